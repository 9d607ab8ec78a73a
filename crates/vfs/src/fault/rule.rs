//! Rules: the calls to fail, and how.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use base::Error;

use crate::IoClass;

/// The kind of a call, on any handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Opening a file to read.
    Open,
    /// `create`, `create_shared`.
    Create,
    /// Opening a file to append.
    OpenAppend,
    /// A read.
    Read,
    /// `append`, `write_at`.
    Write,
    /// A sync of a file.
    Sync,
    /// `start_writeback` of a shared or mapped file.
    Writeback,
    /// `allocate`, and `ensure` on a mapping.
    Allocate,
    /// A truncation.
    Truncate,
    /// `map_read`.
    MapRead,
    /// Creating a mapped file.
    CreateMapped,
    /// A look at a file's metadata.
    Metadata,
    /// Reading a directory.
    ReadDir,
    /// Creating a directory.
    CreateDir,
    /// A sync of a directory.
    SyncDir,
    /// Removing a file.
    RemoveFile,
    /// Removing a directory.
    RemoveDir,
    /// A rename.
    Rename,
    /// A hard link.
    Link,
    /// Resolving a path.
    Canonicalize,
    /// Locking a file.
    Lock,
    /// Starting a thread.
    Spawn,
}

impl Operation {
    /// All operations.
    pub const ALL: [Operation; 22] = [
        Operation::Open,
        Operation::Create,
        Operation::OpenAppend,
        Operation::Read,
        Operation::Write,
        Operation::Sync,
        Operation::Writeback,
        Operation::Allocate,
        Operation::Truncate,
        Operation::MapRead,
        Operation::CreateMapped,
        Operation::Metadata,
        Operation::ReadDir,
        Operation::CreateDir,
        Operation::SyncDir,
        Operation::RemoveFile,
        Operation::RemoveDir,
        Operation::Rename,
        Operation::Link,
        Operation::Canonicalize,
        Operation::Lock,
        Operation::Spawn,
    ];
}

/// The errno to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultCode {
    /// EIO.
    Io,
    /// ENOSPC.
    NoSpace,
    /// EMFILE.
    TooManyFiles,
    /// EXDEV, as of a link to another file system.
    OtherDevice,
}

impl FaultCode {
    #[cfg(unix)]
    fn number(self) -> i32 {
        match self {
            FaultCode::Io => libc::EIO,
            FaultCode::NoSpace => libc::ENOSPC,
            FaultCode::TooManyFiles => libc::EMFILE,
            FaultCode::OtherDevice => libc::EXDEV,
        }
    }

    /// `ERROR_IO_DEVICE`, `ERROR_DISK_FULL`, `ERROR_TOO_MANY_OPEN_FILES`, `ERROR_NOT_SAME_DEVICE`.
    #[cfg(windows)]
    fn number(self) -> i32 {
        match self {
            FaultCode::Io => 1117,
            FaultCode::NoSpace => 112,
            FaultCode::TooManyFiles => 4,
            FaultCode::OtherDevice => 17,
        }
    }

    pub(super) fn error(self, operation: Operation, path: &Path) -> Error {
        let code = self.number();
        let doing = format!("{operation:?}").to_lowercase();
        let source = std::io::Error::from_raw_os_error(code);
        let error = match self {
            // `Unsupported`, as from the real file system: nothing failed.
            FaultCode::OtherDevice => Error::unsupported(format!("cannot {doing}")).at_path(path).with_source(source),
            _ => Error::io(&doing, path, source),
        };
        error.context("injected fault")
    }
}

/// The effect of a rule on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Only the error, without an effect. After a failed sync, later syncs through the same handle report success and
    /// do nothing, as in the kernel.
    Error(FaultCode),
    /// The call takes effect, then reports an error.
    ErrorAfter(FaultCode),
    /// A read fills half of its buffer, as at a file's end. Other calls pass.
    ShortRead,
    /// A write writes its first half, then reports the error. Other calls pass.
    ShortWrite(FaultCode),
    /// The call takes longer. Zero only counts the matching calls.
    Latency(Duration),
}

/// A fault and the calls it applies to. An unset field matches every call. By default the first matching call fails.
#[derive(Clone, Debug)]
pub struct Rule {
    fault: Fault,
    operation: Option<Operation>,
    class: Option<IoClass>,
    path_part: Option<String>,
    byte: Option<u64>,
    nth: u64,
    sticky: bool,
}

impl Rule {
    /// A rule for every operation.
    pub fn new(fault: Fault) -> Self {
        Rule { fault, operation: None, class: None, path_part: None, byte: None, nth: 1, sticky: false }
    }

    /// For this operation only.
    #[must_use]
    pub fn on(mut self, operation: Operation) -> Self {
        self.operation = Some(operation);
        self
    }

    /// Only calls of this class. Calls without a class do not match.
    #[must_use]
    pub fn class(mut self, class: IoClass) -> Self {
        self.class = Some(class);
        self
    }

    /// Only paths containing this text. For a rename or link, either path may.
    #[must_use]
    pub fn path(mut self, part: impl Into<String>) -> Self {
        self.path_part = Some(part.into());
        self
    }

    /// Only reads of this byte of a file.
    #[must_use]
    pub fn byte(mut self, at: u64) -> Self {
        self.byte = Some(at);
        self
    }

    /// The first matching call to fail. Calls count from 1, starting when the rule is added.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = nth;
        self
    }

    /// Fails every matching call from the nth on, not only the nth.
    #[must_use]
    pub fn sticky(mut self) -> Self {
        self.sticky = true;
        self
    }

    fn matches(&self, operation: Operation, class: Option<IoClass>, path: &Path, read: &Range<u64>) -> bool {
        self.operation.is_none_or(|wanted| wanted == operation)
            && (self.class.is_none() || self.class == class)
            && self.byte.is_none_or(|at| read.contains(&at))
            && self.path_part.as_ref().is_none_or(|part| path.to_string_lossy().contains(part))
    }
}

/// Identifies an added rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleId(u64);

/// A fault, with its error constructed.
pub(super) enum Verdict {
    Pass,
    Fail(Error),
    FailAfter(Error),
    /// A short read, or a short write if there is an error.
    Short(Option<Error>),
}

#[derive(Default)]
pub(super) struct Script {
    /// Rules in order of addition, each with its count of matched calls.
    rules: BTreeMap<u64, (Rule, u64)>,
    next_rule: u64,
    calls: BTreeMap<Operation, u64>,
    fired: u64,
}

impl Script {
    pub(super) fn add(&mut self, rule: Rule) -> RuleId {
        let id = self.next_rule;
        self.next_rule += 1;
        self.rules.insert(id, (rule, 0));
        RuleId(id)
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }

    pub(super) fn calls(&self, operation: Operation) -> u64 {
        self.calls.get(&operation).copied().unwrap_or(0)
    }

    pub(super) fn matched(&self, rule: RuleId) -> u64 {
        self.rules.get(&rule.0).map_or(0, |(_, matched)| *matched)
    }

    pub(super) fn fired(&self) -> u64 {
        self.fired
    }

    /// Counts a call in every matching rule. Returns the fault of the first rule to fire. `read`: the bytes that a read asks
    /// for.
    pub(super) fn next(
        &mut self,
        operation: Operation,
        class: Option<IoClass>,
        path: &Path,
        read: &Range<u64>,
    ) -> Option<Fault> {
        *self.calls.entry(operation).or_default() += 1;
        let mut fault = None;
        for (rule, matched) in self.rules.values_mut() {
            if !rule.matches(operation, class, path, read) {
                continue;
            }
            *matched += 1;
            if *matched == rule.nth || (rule.sticky && *matched > rule.nth) {
                fault = fault.or(Some(rule.fault));
            }
        }
        self.fired += u64::from(fault.is_some());
        fault
    }
}
