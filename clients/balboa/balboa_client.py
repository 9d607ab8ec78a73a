"""Debian's balboa-backend-rocksdb, a passive-DNS store: the binary as it is packaged, asked over its own protocol.

    balboa_client.py BINARY

Observations of one name and value are merged by a merge operator of the binary's, written in C; queries by name iterate,
queries by value follow an inverted index; a backup is made by the backup engine. The protocol is msgpack in msgpack, of
which the few types in use are written and read here.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "python"))

from checks import check, equal, run  # noqa: E402

BINARY = sys.argv[1]
INPUT, QUERY, BACKUP, DUMP = 1, 2, 3, 4
STREAM_START, STREAM_DATA, STREAM_END = 130, 131, 132


class Timestamp(int):
    """Seconds since the epoch, which msgpack has a type of its own for."""


def pack(value):
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, Timestamp):
        return b"\xd6\xff" + struct.pack(">I", value)
    if isinstance(value, int):
        return b"\xce" + struct.pack(">I", value)
    if isinstance(value, str):
        text = value.encode()
        return b"\xda" + struct.pack(">H", len(text)) + text
    if isinstance(value, bytes):
        return b"\xc5" + struct.pack(">H", len(value)) + value
    if isinstance(value, dict):
        return bytes([0x80 | len(value)]) + b"".join(pack(item) for pair in value.items() for item in pair)
    raise TypeError(f"{value!r} is nothing that the protocol has")


def unpack(read):
    """Reads one value; `read(n)` yields the next n bytes."""
    tag = read(1)[0]

    def number(format_):
        return struct.unpack(format_, read(struct.calcsize(format_)))[0]

    def pairs(count):
        return {unpack(read): unpack(read) for _ in range(count)}

    if tag < 0x80:
        return tag
    if tag < 0x90:
        return pairs(tag & 0x0F)
    if 0xA0 <= tag < 0xC0:
        return read(tag & 0x1F).decode()
    sized = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
    if tag in sized:
        found = read(number(sized[tag]))
        return found if tag < 0xD0 else found.decode()
    numbers = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
    if tag in numbers:
        return number(numbers[tag])
    if tag == 0xD6 and number(">b") == -1:
        return number(">I")
    if tag in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[tag]
    raise ValueError(f"the backend sent a value of type {tag:#x}")


def observation(name, value, count=1, first=1000, last=2000, kind="A", sensor="sensor"):
    times = {"F": Timestamp(first), "L": Timestamp(last)}
    return {"C": count, **times, "D": value, "N": name, "T": kind, "I": sensor}


class Backend:
    """The binary at work on a database, and one connection to it."""

    def __init__(self, directory):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.log = open(os.path.join(directory, "balboa.log"), "ab")
        command = [BINARY, "-d", os.path.join(directory, "db"), "-l", "127.0.0.1", "-p", str(port), "-R"]
        # What the library lacks (scripts/clients.sh).
        environment = {**os.environ, "LD_PRELOAD": os.environ.get("STUBS", "")}
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)
        self.address = ("127.0.0.1", port)
        self.connect()

    def connect(self):
        for _ in range(200):
            if self.process.poll() is not None:
                raise AssertionError(f"the backend ended with {self.process.returncode}: {self.said()}")
            try:
                self.socket = socket.create_connection(self.address, timeout=30)
                return
            except ConnectionRefusedError:
                time.sleep(0.05)
        raise AssertionError("the backend does not listen")

    def said(self):
        with open(self.log.name, "rb") as log:
            return log.read().decode(errors="replace")[-500:]

    def send(self, kind, message):
        self.socket.sendall(pack({"T": kind, "M": pack(message)}))

    def read(self, count):
        found = b""
        while len(found) < count:
            part = self.socket.recv(count - len(found))
            if not part:
                raise AssertionError(f"the backend closed the connection: {self.said()}")
            found += part
        return found

    def add(self, *observations):
        for entry in observations:
            self.send(INPUT, entry)

    def query(self, name="", value="", kind="", sensor="", limit=1000):
        """Observations as (name, value, type, count, first seen, last seen)."""
        words = {"Qrrname": name, "Qrdata": value, "Qrrtype": kind, "QsensorID": sensor}
        wanted = {"H" + word[1:]: bool(text) for word, text in words.items()}
        self.send(QUERY, {**words, **wanted, "Limit": limit})
        found = []
        while True:
            message = unpack(self.read)
            if message["T"] == STREAM_END:
                return sorted(found)
            if message["T"] == STREAM_DATA:
                inner = iter(message["M"])
                entry = unpack(lambda count: bytes(next(inner) for _ in range(count)))
                found.append(tuple(entry[key] for key in "NDTCFL"))
            elif message["T"] != STREAM_START:
                raise AssertionError(f"an answer of type {message['T']}")

    def ask_and_wait(self, kind, path):
        """For requests at whose end the backend closes the connection; returns what it sent."""
        self.send(kind, {"P": path})
        answer = b""
        while part := self.socket.recv(1 << 16):
            answer += part
        self.connect()
        return answer

    def close(self):
        self.socket.close()
        self.process.terminate()
        code = self.process.wait(timeout=60)
        self.log.close()
        # Threads that the library started before the binary blocked the signal take it: then it ends the process.
        equal(code in (0, -signal.SIGTERM), True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.process.kill()
            self.process.wait()
            self.log.close()
        else:
            self.close()


NAMES = [f"host{i:03}.example.org" for i in range(200)]


def fill(backend):
    backend.add(*(observation(name, f"10.0.0.{i}", kind="A") for i, name in enumerate(NAMES)))


@check
def observations_are_found_by_name_and_by_value(directory):
    with Backend(directory) as backend:
        fill(backend)
        equal(backend.query(name=NAMES[7]), [(NAMES[7], "10.0.0.7", "A", 1, 1000, 2000)])
        equal(backend.query(value="10.0.0.9"), [(NAMES[9], "10.0.0.9", "A", 1, 1000, 2000)])
        equal(backend.query(name="nobody.example.org"), [])


@check
def observations_of_one_thing_are_merged(directory):
    with Backend(directory) as backend:
        for i in range(1, 101):
            backend.add(observation("www.example.org", "10.1.1.1", count=i, first=5000 - i, last=6000 + i))
        expected = [("www.example.org", "10.1.1.1", "A", 5050, 4900, 6100)]
        equal(backend.query(name="www.example.org"), expected)
        equal(backend.query(value="10.1.1.1"), expected)


@check
def queries_choose_by_type_sensor_and_limit(directory):
    with Backend(directory) as backend:
        for kind, value in [("A", "10.0.0.1"), ("AAAA", "::1"), ("MX", "mail.example.org")]:
            for sensor in ("east", "west"):
                backend.add(observation("example.org", value, kind=kind, sensor=sensor))
        equal(len(backend.query(name="example.org")), 6)
        equal(backend.query(name="example.org", kind="MX", sensor="west")[0][1], "mail.example.org")
        equal(len(backend.query(name="example.org", sensor="east")), 3)
        equal(len(backend.query(name="example.org", limit=2)), 2)


@check
def everything_is_there_after_a_restart(directory):
    with Backend(directory) as backend:
        fill(backend)
        equal(len(backend.query(name=NAMES[199])), 1)
    with Backend(directory) as backend:
        backend.add(observation(NAMES[0], "10.0.0.0", count=4, last=9000))
        equal(backend.query(name=NAMES[0]), [(NAMES[0], "10.0.0.0", "A", 5, 1000, 9000)])
        equal([backend.query(name=name)[0][1] for name in NAMES], [f"10.0.0.{i}" for i in range(200)])


@check
def a_kill_loses_nothing_that_was_answered(directory):
    backend = Backend(directory)
    fill(backend)
    equal(len(backend.query(name=NAMES[199])), 1)
    backend.process.kill()
    backend.process.wait()
    backend.log.close()
    with Backend(directory) as again:
        equal(sum(len(again.query(name=name)) for name in NAMES), 200)


@check
def a_dump_has_every_observation(directory):
    with Backend(directory) as backend:
        fill(backend)
        equal(len(backend.query(name=NAMES[199])), 1)
        dumped = iter(backend.ask_and_wait(DUMP, ""))
        found = []
        try:
            while True:
                found.append(unpack(lambda count: bytes(next(dumped) for _ in range(count)))[0].decode())
        except (StopIteration, RuntimeError, IndexError):
            equal(found, NAMES)


@check
def backups_are_made_beside_writes(directory):
    place = os.path.join(directory, "backups")
    with Backend(directory) as backend:
        for round_ in range(2):
            backend.add(*(observation(f"{round_}.{name}", "10.2.2.2") for name in NAMES))
            backend.ask_and_wait(BACKUP, place)
        equal(len(backend.query(name=f"1.{NAMES[199]}")), 1)
        equal(backend.process.poll(), None)
    equal(sorted(name for name in os.listdir(os.path.join(place, "meta")) if name.isdigit()), ["1", "2"])
    for number in ("1", "2"):
        with open(os.path.join(place, "meta", number), encoding="ascii") as meta:
            files = [line.split(" ")[0] for line in meta if " crc32 " in line]
        equal([name for name in files if not os.path.isfile(os.path.join(place, name))], [])
        equal(any(name.startswith("private/") and "MANIFEST" in name for name in files), True)


run()
