"""Server-sent events."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Event:
    id: str = ""
    data: str = ""


class EventReader:
    """Collects lines into events."""

    def __init__(self) -> None:
        self._event = Event()

    def add(self, line: str) -> Event | None:
        """Returns the event that the line completes, if any."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                self._event.id = value
            elif name == "data":
                self._event.data += value
            return None
        event, self._event = self._event, Event()
        return event if event.data else None
