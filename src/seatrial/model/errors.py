"""What we say when we cannot go on. Each sentence tells what was being done and where."""


class CannotContinue(Exception):
    """The input or the call cannot be understood: exit 2, one sentence, no traceback."""


class NothingToCheck(Exception):
    """The input is fine but holds no Kubernetes object: exit 3."""
