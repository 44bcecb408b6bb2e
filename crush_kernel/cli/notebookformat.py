"""nbformat, imported in a tenth of its time.

It imports jsonschema, which for one format of strings imports a package that builds a large
grammar: a second or more before any run begins. Notebooks have no such strings, and where
the package is missing jsonschema does without; so it is missing for the time of the import.
"""

import sys
from typing import Any, cast

_GRAMMAR = "rfc3987_syntax"


def _import_nbformat() -> Any:  # noqa: ANN401 - its functions carry no types
    if _GRAMMAR in sys.modules:
        import nbformat  # noqa: PLC0415 - the point of this module
    else:
        sys.modules[_GRAMMAR] = cast("Any", None)  # which makes its import an `ImportError`
        try:
            import nbformat  # noqa: PLC0415 - see above
        finally:
            del sys.modules[_GRAMMAR]
    return nbformat


nbformat = _import_nbformat()
