"""A real cluster: looked at, waited for and compared with the rehearsal. Read-only unless a function says otherwise."""
