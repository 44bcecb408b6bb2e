"""What the journal keeps of an answer to a request for permission. Pure."""

from crush_kernel.agent.events import PermissionSettled
from crush_kernel.history.decisions import DecisionRecord, write_decision
from crush_kernel.messages import JsonObject


def decision_facts(event: PermissionSettled) -> JsonObject:
    """Return what was decided, by whom, of what and for whom, whole and with its secrets."""
    request = event.request
    return write_decision(
        DecisionRecord(
            tool=request.tool,
            action=request.action,
            title=request.title,
            is_allowed=event.is_allowed,
            by=event.by,
            rule=event.rule,
            reason=event.reason,
            call_id=request.call_id,
            on_behalf=request.on_behalf,
            is_outside=request.is_outside,
            is_read_only=request.is_read_only,
            paths=tuple(map(str, dict.fromkeys((*request.paths, *request.reads, *request.writes)))),
            server=request.server,
            command=request.command,
            cwd=str(request.cwd) if request.cwd else "",
            parts=tuple(part.text for part in request.parts),
            dangers=request.dangers,
            kept_rules=event.kept_rules,
            kept_scope=event.kept_scope,
            input=event.original_input,
            effective_input=event.effective_input,
        )
    )
