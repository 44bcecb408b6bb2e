"""The rules that people have written: what they say to a request.

Source: design §5, "Grants, trust and hooks are never read from a notebook"; Crush,
`permissions.allowed_tools`.
"""

from dataclasses import dataclass

from crush_kernel.permissions.request import PermissionRequest


@dataclass(frozen=True, slots=True)
class Policy:
    """All rules that hold, of the user and of the project, which may only tighten."""

    def denies(self, request: PermissionRequest) -> str:  # noqa: ARG002
        """Return the rule that refuses `request`, empty if none does; one subject suffices."""
        return ""

    def asks(self, request: PermissionRequest) -> str:  # noqa: ARG002
        """Return the rule that wants `request` to be asked, empty if none does."""
        return ""

    def allows(self, request: PermissionRequest, *, by_name: bool = False) -> str:  # noqa: ARG002
        """Return the rules that allow `request`, empty if they do not; all of it must be covered.

        Args:
            request: what is wanted.
            by_name: whether only rules count that name what it is done to, `bash(rm -r build)`
                and not `bash`: what is dangerous passes by no other.
        """
        return ""
