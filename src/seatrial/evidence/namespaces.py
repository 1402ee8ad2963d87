"""How the API server and kubectl say that a namespace is not there."""

from __future__ import annotations

import re

NOT_FOUND = re.compile(r'namespaces? "(?P<name>[^"]+)" not found|error getting namespace (?P<other>[^:\s]+)')
