"""Errors that end the program. Each message tells what was being done and where."""


class CannotContinue(Exception):
    """The input or the command line is invalid: exit 2, one sentence, no traceback."""


class TryAgain(CannotContinue):
    """The machine was too slow for the check: the same command may succeed."""


class NothingToCheck(Exception):
    """The input is valid but contains no Kubernetes object: exit 3."""
