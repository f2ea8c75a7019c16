"""How long recall takes lately, and when to do with less.

A ring of the last 100 retrievals. Above 300 ms at the 95th percentile, recall looks at fewer candidates until it
is back below 200 ms. Rule: five samples at least, or there is no judgement.
"""

from collections import deque

RING = 100
FEWEST = 5
HEALTHY_MS = 200.0
TOO_SLOW_MS = 300.0


class Latencies:
    """The ring of one opened memory. The first retrieval of a process warms caches up and does not count."""

    def __init__(self) -> None:
        self._ring: deque[float] = deque(maxlen=RING)
        self._is_warm = False
        self.is_degraded = False

    def note(self, took_ms: float) -> None:
        """One more retrieval."""
        if not self._is_warm:
            self._is_warm = True
            return
        self._ring.append(took_ms)
        p95 = self.p95_ms()
        if p95 is None:
            return
        if p95 > TOO_SLOW_MS:
            self.is_degraded = True
        elif p95 < HEALTHY_MS:
            self.is_degraded = False

    def p95_ms(self) -> float | None:
        """The 95th percentile, or None while there are fewer than five."""
        return percentile(list(self._ring), 0.95) if len(self._ring) >= FEWEST else None


def percentile(values: list[float], share: float) -> float:
    """The smallest value that at least that share of all is not above."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
