//! New ids: of databases and of their sessions.

use vfs::Vfs;

/// A random UUID, version 4, like RocksDB's ids.
pub(crate) fn new_identity(vfs: &dyn Vfs) -> String {
    let (high, low) = (vfs.random_u64(), vfs.random_u64());
    let high = (high & !0xF000) | 0x4000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    let low_bits = low & 0xFFFF_FFFF_FFFF;
    format!("{:08x}-{:04x}-{:04x}-{:04x}-{low_bits:012x}", high >> 32, (high >> 16) & 0xFFFF, high & 0xFFFF, low >> 48)
}

/// Twenty base-36 characters.
pub(crate) fn new_session(vfs: &dyn Vfs) -> String {
    const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut number = (u128::from(vfs.random_u64()) << 64) | u128::from(vfs.random_u64());
    let digit = |_| {
        let digit = DIGITS.get((number % 36) as usize).copied().unwrap_or(b'0');
        number /= 36;
        char::from(digit)
    };
    (0..20).map(digit).collect()
}
