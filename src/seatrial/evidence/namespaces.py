"""The errors of the API server and kubectl about a missing namespace."""

from __future__ import annotations

import re

NOT_FOUND = re.compile(r'namespaces? "(?P<name>[^"]+)" not found|error getting namespace (?P<other>[^:\s]+)')
