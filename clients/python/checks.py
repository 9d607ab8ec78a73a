"""What the client programs in Python share: named checks, each of which prints one line."""

import sys
import tempfile
import traceback

CHECKS = []


def check(function):
    """Marks a function that is called with an empty directory and raises where something is not as it should be."""
    CHECKS.append(function)
    return function


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"expected {expected!r}, found {found!r}")


def fails(error, action):
    """Calls `action`, which has to raise `error`, and returns what it said."""
    try:
        action()
    except error as raised:
        return str(raised)
    raise AssertionError(f"no {error.__name__} where there should be one")


def run():
    """Runs every check; the lines `ok NAME` and `FAILED NAME: why` are what scripts/clients.sh counts."""
    failed = 0
    for function in CHECKS:
        try:
            with tempfile.TemporaryDirectory() as directory:
                function(directory)
            print("ok", function.__name__, flush=True)
        except Exception as error:  # whatever it is, the other checks go on
            failed += 1
            traceback.print_exc()
            print(f"FAILED {function.__name__}: {' '.join(str(error).split())}", flush=True)
    sys.exit(1 if failed else 0)
