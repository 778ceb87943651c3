"""Try the mutants of some modules in one process: tests are imported once, and each mutant is a forked child.

    python -m mutation.worker plan.json      # started by scripts/mutants.py

The tests run once unchanged, which tells how long each takes and which lines of the modules it reaches. A child
then puts the changed code into the functions that are loaded already, and runs the tests that reach the changed
statement, quick ones first, until one fails. The first failure ends it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import hashlib
import json
import os
import resource
import signal
import sys
import threading
import time
import types
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, Phase, settings

from mutation.operators import Mutant, mutants

_KILLED, _SURVIVED = 1, 0
_LEFT_OUT = -1.0
_LONGEST = 10.0  # seconds of computing; a test that takes longer is left out


class Mutating:
    """A plugin of pytest that tries mutants in place of running the tests once."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.state = Path(plan["state"])
        self.paths = [str(Path(plan["root"]) / "src" / "lustrum" / m) for m in plan["modules"]]
        # As they are loaded, whatever is written into them while the mutants are tried.
        self.sources = {path: Path(path).read_text() for path in self.paths}
        self.digests: dict[str, bytes] = {}
        self.reached: dict[tuple[str, int], set[int]] = defaultdict(set)
        self.seconds: list[float] = []
        self.killers: dict[str, Counter[int]] = defaultdict(Counter)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("the tests could not be collected")
        self.items = session.items
        self.named = {item.nodeid: at for at, item in enumerate(self.items)}
        for path in {str(item.path) for item in self.items}:
            self.digests[path] = hashlib.sha256(Path(path).read_bytes()).digest()
        # A test by its name and the contents of its file: what a survivor has passed it need not pass again.
        self.marks = [
            hashlib.sha256(item.nodeid.encode() + self.digests[str(item.path)]).hexdigest()[:8]
            for item in self.items
        ]
        begun = time.process_time()
        self._first_run()
        print(f"{len(self.items)} tests, {time.process_time() - begun:.0f} s", flush=True)
        gc.unfreeze()  # what is left out of searches for garbage is not listed either
        for held in gc.get_objects():
            if isinstance(held, functools._lru_cache_wrapper):
                held.cache_clear()
        self.functions: dict[str, list[types.FunctionType]] = defaultdict(list)
        for held in gc.get_objects():
            if isinstance(held, types.FunctionType) and held.__code__.co_filename in self.paths:
                self.functions[held.__code__.co_filename].append(held)
        for path in self.paths:
            if "def " in self.sources[path] and path not in self.functions:
                raise RuntimeError(
                    f"nothing in {path} could be changed: none of its functions is loaded"
                )
        gc.collect()
        gc.freeze()
        self._control()
        for path in self.paths:
            self._try_module(path)
        return True

    def _first_run(self) -> None:
        """Run the tests unchanged: how long does each take, and which lines does it reach?

        What an earlier run has found out still holds while neither the test's file nor a module has changed; of
        such tests only some quick ones run, so that children find loaded what they need. A test that fails
        now, or takes too long, is left out.
        """
        kept = Path(self.plan["state"]).with_suffix(".tests.json")
        before = json.loads(kept.read_text()) if kept.exists() else {}
        modules = hashlib.sha256("".join(self.sources.values()).encode()).hexdigest()
        keys = [
            f"{item.nodeid} {self.digests[str(item.path)].hex()[:16]} {modules[:16]}"
            for item in self.items
        ]
        quick = sorted((before[k]["seconds"], k) for k in keys if k in before)[:40]
        run_again = {k for _, k in quick}
        found = {}
        todo = [at for at, k in enumerate(keys) if k not in before or k in run_again]
        for at, following in zip(todo, [*todo[1:], None], strict=True):
            seconds, lines = self._traced(at, following)
            found[keys[at]] = {"seconds": seconds, "lines": lines}
        for at, k in enumerate(keys):
            found.setdefault(k, before.get(k))
            self.seconds.append(found[k]["seconds"])
            if found[k]["seconds"] == _LEFT_OUT:
                print("left out:", self.items[at].nodeid, flush=True)
                continue
            for path, numbers in found[k]["lines"].items():
                for number in numbers:
                    self.reached[path, number].add(at)
        kept.write_text(json.dumps({**before, **found}))

    def _traced(self, at: int, following: int | None) -> tuple[float, dict[str, list[int]]]:
        """Seconds of computing that a test takes, and the lines of the modules that it reaches."""
        wanted = set(self.paths)
        reached: dict[str, set[int]] = defaultdict(set)

        def lines(frame: types.FrameType, event: str, _: object) -> Any:
            if event == "line":
                reached[frame.f_code.co_filename].add(frame.f_lineno)
            return lines

        def calls(frame: types.FrameType, event: str, _: object) -> Any:
            return lines if frame.f_code.co_filename in wanted else None

        def too_long(number: int, frame: object) -> None:
            raise TimeoutError(f"the test takes longer than {_LONGEST:g} s")

        begun = time.process_time()
        signal.signal(signal.SIGPROF, too_long)
        signal.setitimer(signal.ITIMER_PROF, _LONGEST)
        sys.settrace(calls)
        threading.settrace(calls)
        try:
            reports = runtestprotocol(
                self.items[at],
                nextitem=None if following is None else self.items[following],
                log=False,
            )
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            signal.setitimer(signal.ITIMER_PROF, 0)
        spent = time.process_time() - begun
        failed = any(report.failed for report in reports)
        return _LEFT_OUT if failed else spent, {p: sorted(n) for p, n in reached.items()}

    def _control(self) -> None:
        """An unchanged child must pass: what the first run left behind must not break its children."""
        chosen = [at for at in self._by_cost(range(len(self.items))) if self.seconds[at] < 0.5][:40]
        outcome, which, _ = self._fork(None, chosen)
        if outcome != "survived":
            raise RuntimeError(f"an unchanged child ends as {outcome}: {which}")

    def _by_cost(self, tests: Any) -> list[int]:
        able = (t for t in tests if self.seconds[t] != _LEFT_OUT)
        return sorted(able, key=lambda t: self.seconds[t])

    def _try_module(self, path: str) -> None:
        tree = ast.parse(self.sources[path])
        module = path.split("/src/lustrum/")[1]
        known = read(self.state)
        for name, mutant in named(module, mutants(tree)):
            tests = {
                t
                for line in range(mutant.first, mutant.last + 1)
                for t in self.reached.get((path, line), ())
            }
            if not mutant.where:
                # A constant: tests that reach the module, and those that may read constants alone.
                tests = set().union(*(t for (p, _), t in self.reached.items() if p == path))
                tests |= set(range(len(self.items))).difference(*self.reached.values())
            before = known.get(name)
            if before and before["outcome"] in ("killed", "timeout", "crashed"):
                if before.get("test") in self.named:
                    self.killers[mutant.where][self.named[before["test"]]] += 1
                continue
            if before and self.plan["untried"]:
                continue
            passed = set(before.get("passed", "").split()) if before else set()
            fresh = {t for t in tests if self.marks[t] not in passed}
            if before and not fresh and tests:
                continue
            chosen, left = self._choose(path, mutant, fresh)
            if passed and sum(self.seconds[t] for t in chosen) > self.plan["budget"]:
                continue  # only tests that take longer than a mutant may are left
            if not chosen:
                outcome, which, spent = "no tests", "", 0.0
            else:
                outcome, which, spent = self._fork((path, tree, mutant), chosen)
            if which in self.named:
                self.killers[mutant.where][self.named[which]] += 1
            if outcome == "stopped":
                return
            if outcome == "survived" and left:
                outcome = "survived so far"
            record = {
                "mutant": name,
                "line": mutant.first,
                "before": mutant.before,
                "after": mutant.after,
                "outcome": outcome,
                "test": which,
                "seconds": round(spent, 2),
            }
            if outcome.startswith("survived"):
                passed |= {self.marks[t] for t in chosen}
                record["passed"] = " ".join(sorted(passed))
            with self.state.open("a") as out:
                out.write(json.dumps(record) + "\n")

    def _choose(self, path: str, mutant: Mutant, tests: set[int]) -> tuple[list[int], int]:
        """The tests to try, up to the seconds that a mutant may take, and how many are left.

        Those that have killed neighbours come first, then those that reach the body of a changed condition.
        Otherwise the files of tests take turns, each with its quickest test.
        """
        budget = self.plan["budget"]
        killers = [t for t, _ in self.killers[mutant.where].most_common(3) if t in tests]
        first = [t for t in killers if self.seconds[t] < 0.2 * budget]
        inside = self.reached.get((path, mutant.inner), set()) & tests
        turns: Counter[tuple[bool, Path]] = Counter()
        ranked = []
        for t in self._by_cost(tests):
            kind = (t not in inside, self.items[t].path)
            ranked.append((t not in inside, turns[kind], self.seconds[t], t))
            turns[kind] += 1
        rest = [t for *_, t in sorted(ranked) if t not in first]
        chosen: list[int] = []
        spent = 0.0
        for t in [*first, *rest]:
            if chosen and spent + self.seconds[t] > budget:
                continue
            spent += self.seconds[t]
            chosen.append(t)
        return chosen, len(first) + len(rest) - len(chosen)

    def _fork(
        self, change: tuple[str, ast.Module, Mutant] | None, chosen: list[int]
    ) -> tuple[str, str, float]:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _child(self, change, chosen, writing)
        os.close(writing)
        _, status, used = os.wait4(child, 0)
        with os.fdopen(reading) as told:
            which = told.read()
        _end_group(child)
        spent = used.ru_utime + used.ru_stime
        if os.WIFSIGNALED(status):
            ended = os.WTERMSIG(status)
            if ended == signal.SIGTERM:
                return "stopped", "", spent
            late = ended in (signal.SIGALRM, signal.SIGPROF, signal.SIGKILL, signal.SIGXCPU)
            return ("timeout" if late else "crashed"), which, spent
        return ("killed" if os.WEXITSTATUS(status) == _KILLED else "survived"), which, spent


def _end_group(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _child(
    run: Mutating,
    change: tuple[str, ast.Module, Mutant] | None,
    chosen: list[int],
    writing: int,
) -> None:
    """Make the change, run the tests, and end the process."""
    try:
        gc.disable()
        os.setsid()
        for number in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(number, signal.SIG_DFL)
        room = 6 * 2**30
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + room, resource.RLIM_INFINITY))
        if change is not None:
            path, tree, mutant = change
            mutant.change()
            _put_code(run, path, tree, mutant)
        for k, at in enumerate(chosen):
            # Of computing time; the clock only ends what waits for ever.
            limit = 2 * run.seconds[at] + 2
            signal.setitimer(signal.ITIMER_PROF, limit)
            signal.alarm(run.plan["patience"] or int(15 * limit) + 10)
            following = run.items[chosen[k + 1]] if k + 1 < len(chosen) else None
            reports = runtestprotocol(run.items[at], nextitem=following, log=False)
            if any(report.failed for report in reports):
                os.write(writing, run.items[at].nodeid.encode())
                os._exit(_KILLED)
    except BaseException as problem:
        os.write(writing, f"{type(problem).__name__}: {problem}"[:200].encode())
        os._exit(_KILLED)
    os._exit(_SURVIVED)


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _put_code(run: Mutating, path: str, tree: ast.Module, mutant: Mutant) -> None:
    code = compile(ast.fix_missing_locations(tree), path, "exec")
    if not mutant.where:
        _put_constant(path, mutant)
        return
    changed = {(c.co_qualname, c.co_firstlineno): c for c in _codes(code)}
    for function in run.functions[path]:
        key = (function.__code__.co_qualname, function.__code__.co_firstlineno)
        new = changed.get(key)
        if new is not None and len(new.co_freevars) == len(function.__code__.co_freevars):
            function.__code__ = new


def _put_constant(path: str, mutant: Mutant) -> None:
    """Compute the constants of the module again, and put those that differ wherever they were imported."""
    module = next(
        m
        for m in list(sys.modules.values())
        if getattr(m, "__file__", None) == path and m.__name__ in sys.modules
    )
    made: dict[str, object] = {}
    exec(compile(mutant.after, path, "exec"), {**module.__dict__}, made)
    for name, value in made.items():
        if name not in module.__dict__:
            continue
        old = module.__dict__[name]
        for other in list(sys.modules.values()):
            held = getattr(other, "__dict__", {})
            if held.get(name) is old and other.__name__.startswith("lustrum"):
                held[name] = value


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def named(module: str, all_of_them: Iterator[Mutant]) -> Iterator[tuple[str, Mutant]]:
    """Mutants with names that stay while their function stays: where, what, and which of several alike."""
    seen: Counter[str] = Counter()
    for mutant in all_of_them:
        text = f"{module}:{mutant.where}: {mutant.before} -> {mutant.after}"
        seen[text] += 1
        yield (text if seen[text] == 1 else f"{text} ({seen[text]})"), mutant


def read(state: Path) -> dict[str, dict[str, Any]]:
    """What was tried, by the name of the mutant; the last word counts."""
    lines = state.read_text().splitlines() if state.exists() else []
    return {record["mutant"]: record for record in map(json.loads, lines)}


def main() -> int:
    """Collect the tests of the plan and try the mutants of its modules."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    settings.register_profile(
        "mutants",
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    chosen = ["-k", plan["only"]] if plan["only"] else []
    words = [
        "-q",
        "--tb=native",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
        "-p",
        "no:cacheprovider",
        "--capture=sys",
        "-m",
        "not deep and not browser",
    ]
    return int(pytest.main([*words, *chosen, *plan["tests"]], plugins=[Mutating(plan)]))


if __name__ == "__main__":
    sys.exit(main())
