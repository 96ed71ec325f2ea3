"""Minimum cut of a small directed graph (Dinic's algorithm): which nodes fall on the source's side."""

from __future__ import annotations

from collections import deque

INFINITE = 1 << 60


class Network:
    """A flow network over numbered nodes; 0 is the source and 1 the sink."""

    SOURCE, SINK = 0, 1

    def __init__(self) -> None:
        self._edges: list[list[int]] = [[], []]     # per node, indices into the lists below
        self._to: list[int] = []
        self._left: list[int] = []

    def node(self) -> int:
        """Add a node and return its number."""
        self._edges.append([])
        return len(self._edges) - 1

    def edge(self, start: int, end: int, capacity: int) -> None:
        """Add an edge; cutting it costs ``capacity``."""
        for a, b, c in ((start, end, capacity), (end, start, 0)):
            self._edges[a].append(len(self._to))
            self._to.append(b)
            self._left.append(c)

    def cut(self) -> tuple[int, set[int]]:
        """Return the cost of the cheapest cut and the smallest source side that has it."""
        flow = 0
        while True:
            level = self._levels()
            if level[self.SINK] < 0:
                return flow, {n for n, depth in enumerate(level) if depth >= 0}
            position = [0] * len(self._edges)
            while pushed := self._push(level, position):
                flow += pushed

    def _levels(self) -> list[int]:
        level = [-1] * len(self._edges)
        level[self.SOURCE] = 0
        waiting = deque([self.SOURCE])
        while waiting:
            node = waiting.popleft()
            for edge in self._edges[node]:
                end = self._to[edge]
                if self._left[edge] and level[end] < 0:
                    level[end] = level[node] + 1
                    waiting.append(end)
        return level

    def _push(self, level: list[int], position: list[int]) -> int:
        """Send flow along one path of rising levels; 0 when there is none left."""
        path: list[int] = []
        node = self.SOURCE
        while node != self.SINK:
            edges = self._edges[node]
            while position[node] < len(edges):
                edge = edges[position[node]]
                if self._left[edge] and level[self._to[edge]] == level[node] + 1:
                    break
                position[node] += 1
            else:
                if not path:
                    return 0
                node = self._to[path.pop() ^ 1]
                position[node] += 1
                continue
            path.append(edge)
            node = self._to[edge]
        amount = min(self._left[edge] for edge in path)
        for edge in path:
            self._left[edge] -= amount
            self._left[edge ^ 1] += amount
        return amount
