"""The service: where questions come in, with the datasets and policies behind it.

::

    <root>/policies/<dataset>.toml   what the agency decided about a dataset
    <root>/policies/<dataset>.<role>.toml   the same for readers of a role; see lustrum.answer.readers
    <root>/bundles/<dataset>/        its public bundle, where the policy asks for a protected population
    <root>/prepared/<programme>/     prepared tables, see lustrum.public.prepared
    <root>/<dataset>/...             its records; see lustrum.publish.records, which opens them

Bundles can be named without such a folder: then there need not be any records on the machine. A dataset, a
bundle or a policy that was replaced is taken up at the next question. A dataset without a policy answers
nothing. The service itself never opens a record: it counts protected cells, or asks a records
service, by default one in a separate process, for protected numbers.
"""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from lustrum.answer.prepared import PreparedFolders, check_one_population, check_other_folders
from lustrum.answer.readers import Reader, current_reader, reading_as
from lustrum.answer.records_line import FAILURES, START
from lustrum.answer.separate_process import SILENCE, SeparateRecordsService
from lustrum.answer.snapshot import Precheck, ReadPolicy, Snapshot, Stamp, Standing, stamp_of
from lustrum.model import (
    Dataset,
    DatasetError,
    Decision,
    LustrumError,
    PolicyError,
    QueryError,
    TableQuery,
)
from lustrum.model.dataset import DATASET_NAME
from lustrum.model.errors import NotAnsweringError, NotMadeError, NotReadyError, choices
from lustrum.policy import Policy, check_names, read_policy
from lustrum.policy.policy import ROLES, Role
from lustrum.policy.read import is_sealed, line_of
from lustrum.public.bundle.agreement import difference
from lustrum.public.bundle.files import Bundle, bundle_name, other_search, read_bundle
from lustrum.public.bundle.numbers import BundleNumbers
from lustrum.public.numbers import KeyedNumbers, ProtectedNumbers, RecordsService
from lustrum.public.prepared import PreparedFolder
from lustrum.runtime.data_folder import (
    BUNDLES,
    CURRENT,
    MANIFEST,
    POLICIES,
    bundles_in,
    folder_at,
    folders_at,
    standing,
)
from lustrum.runtime.durable import contained, outages
from lustrum.runtime.stop import Stopped, within

log = logging.getLogger("lustrum.answer")

AT_ONCE = 1.0
"""Seconds within which pages, the catalogue and readiness are told what they ask of all datasets."""


class TableService:
    """Answers questions about the datasets of a folder, and about bundles; safe to share between threads."""

    def __init__(
        self,
        root: Path | str | None = None,
        workers: int | None = None,
        *,
        records: RecordsService | None = None,
        bundles: Sequence[Path | str] = (),
        prepared: Sequence[Path | str] = (),
        folder: Path | str | None = None,
        sealed_only: bool = False,
        silence: float = SILENCE,
    ) -> None:
        root = None if root is None else folder_at(root, "root")
        folder = None if folder is None else folder_at(folder, "folder")
        self.root = root
        self.sealed_only = sealed_only
        """Whether policies without a seal are refused."""
        self.bundles = folders_at(bundles, "bundles")
        self.prepared_folders = PreparedFolders(root, folders_at(prepared, "prepared"))
        """The prepared tables that are there; :meth:`prepared` opens those that may be served."""
        self._workers = workers
        self._records = records or (
            None if root is None else SeparateRecordsService(root, workers, silence)
        )
        self._lock = threading.Lock()
        self._policies: dict[Path, ReadPolicy] = {}
        self._opened: dict[Path, tuple[Stamp, BundleNumbers]] = {}
        self._named: dict[str, Path] = {}
        self._agreed: dict[tuple[str, Role], tuple[Policy, BundleNumbers, BundleNumbers]] = {}
        self._standing: dict[tuple[str, Role], Standing] = {}
        self._populations: dict[str, tuple[tuple[Stamp | None, ...], str | None]] = {}
        for path in self.bundles:
            name = bundle_name(path)
            if name in self._named:
                raise DatasetError(f"Two bundles are of the dataset {name!r}; name one of them.")
            self._named[name] = path
        self._own = None
        if folder is None and root is None:
            self._own = tempfile.TemporaryDirectory(prefix="lustrum-")
            folder = Path(self._own.name)
        self._folder = folder or root

    @property
    def folder(self) -> Path:
        """Where the server may keep what it needs between two starts: never a bundle."""
        assert self._folder is not None
        return self._folder

    def close(self) -> None:
        """Close the records service, and its process if it has one."""
        if self._records is not None:
            self._records.close()
        if self._own is not None:
            self._own.cleanup()

    def let_records_go(self) -> None:
        """End the process that holds the records, if there is one; it is started again when it is needed."""
        if self._records is not None:
            self._records.close()

    def check_in_background(self) -> None:
        """Check large datasets in the background from now on, as a server does."""
        if self._records is not None:
            self._records.check_in_background()

    def states(self) -> dict[str, str]:
        """Of each dataset, whether it is ``ready``, ``starting``, still ``checking`` or ``unavailable``.

        Nobody waits long for it: what the part that holds the records does not say at once is ``starting``.
        """
        states = {}
        with within(AT_ONCE):
            for name in self.names():
                try:
                    numbers = self.snapshot(name).numbers
                    silent = isinstance(numbers, KeyedNumbers) and not numbers.records.answering
                    states[name] = "starting" if silent else "ready"
                except (NotAnsweringError, Stopped):
                    states[name] = "starting"
                except NotReadyError:
                    states[name] = "checking"
                except LustrumError:
                    states[name] = "unavailable"
        return states

    def lives(self) -> bool:
        """Whether the part that holds the records lives, or is being started again."""
        return self._records is None or self._records.revive()

    def policy_path(self, name: str, role: Role = "public") -> Path:
        """Where the policy of a dataset of the folder stands."""
        assert self.root is not None
        return self.root / POLICIES / f"{name if role == 'public' else f'{name}.{role}'}.toml"

    def role_for(self, name: str) -> Role | None:
        """The role by whose policy the reader under way is served; None where they may not ask at all.

        Whether there is such a dataset, or such a policy for the public, is not looked at.
        """
        reader = current_reader()
        if not reader.may_ask_about(name):
            return None
        if name not in self._named and self.root is not None and DATASET_NAME.match(name):
            for role in reversed(ROLES[1:]):
                if reader.has(role) and stamp_of(self.policy_path(name, role)) is not None:
                    return role
        return "public"

    def roles(self) -> dict[str, list[Role]]:
        """The names that have policies in the folder, each with the roles that these serve, lowest first."""
        written: dict[str, list[Role]] = {}
        if self.root is not None:
            with outages(self.root):
                stems = {path.stem for path in (self.root / POLICIES).glob("*.toml")}
            for role in ROLES:
                for stem in stems:
                    name, _, serves = stem.partition(".")
                    if serves == ("" if role == "public" else role):
                        written.setdefault(name, []).append(role)
        return written

    def bundle_path(self, name: str) -> Path:
        """Where the bundle of a dataset stands."""
        if name in self._named or self.root is None:
            return self._named[name]
        return self.root / BUNDLES / name

    def described(self) -> list[str]:
        """All datasets that are there, with a policy or without."""
        return sorted(
            {*self._named, *self._in_bundles(), *(self._records.names() if self._records else ())}
        )

    def names(self) -> list[str]:
        """The datasets that have a policy and can be asked about."""
        reader = current_reader()
        with_policy = {name for name, roles in self.roles().items() if reader.has(roles[0])}
        return sorted(filter(reader.may_ask_about, self._there(with_policy)))

    def _there(self, written: set[str]) -> set[str]:
        """The datasets that can be asked about, of those that have a policy and of those named as bundles."""
        names = set(self._named)
        if self.root is not None:
            bundled = written & self._in_bundles()
            # A bundle that was served and is gone is missed for as long as its policy is there.
            names |= bundled | written & {name for name, _ in self._standing}
            if written - bundled and self._records is not None:
                names |= written & set(self._records.names())
        return names

    def datasets(self) -> list[Dataset]:
        return [self.dataset(name) for name in self.names()]

    def dataset(self, name: str) -> Dataset:
        return self.snapshot(name).dataset

    def description(self, name: str) -> Dataset:
        """The description of a dataset whatever its policy says, for the agency that writes one."""
        with contained(f"Dataset {name!r}"):
            if self._records is not None and name in self._records.names():
                return self._records.describe(name).dataset
            return self._open(self.bundle_path(name)).dataset

    def policy(self, name: str) -> Policy:
        """The policy in force; read again when it changed."""
        return self.snapshot(name).policy

    def policy_title(self, name: str) -> str:
        """The title that the policy of a dataset gives it, read without its records; it may be empty."""
        try:
            return self._policy(name, self.role_for(name) or "public").title
        except LustrumError:
            return ""

    def published(self, name: str) -> Snapshot | None:
        """The snapshot of a dataset that can be asked about; None without dataset or policy."""
        snapshot = self.standing(name)
        if snapshot is None and name not in self.names():
            return None
        return snapshot or self.snapshot(name)

    def snapshot(self, name: str) -> Snapshot:
        """The numbers and the policy in force; files that look as they did are not read again, nor listed."""
        current = self.standing(name)
        if current is not None:
            return current
        with contained(f"Dataset {name!r}"):
            return self._snapshot(name)

    def _snapshot(self, name: str) -> Snapshot:
        role = self.role_for(name)
        if role is None:
            raise QueryError(f"There is no dataset {name!r}; {choices(name, self.names())}.")
        if name in self._named:
            numbers = self._open(self._named[name])
            if numbers.bundle.policy.role != "public":
                raise DatasetError(
                    f"The bundle {self._named[name]} was made under a policy for {numbers.bundle.policy.role} "
                    "readers, and a bundle that is named is served to everybody."
                )
            return self._keep(name, Snapshot(numbers, numbers.bundle.policy), ())
        # The part that holds the records is asked only where no bundle stands.
        if name not in self._in_bundles() and name not in self.described():
            if name in self.names():
                raise DatasetError(f"The bundle {self.bundle_path(name)} is gone; put it back.")
            raise QueryError(f"There is no dataset {name!r}; {choices(name, self.names())}.")
        path = self.policy_path(name, role)
        policy = self._policy(name, role)
        beside = self._as_below(name, policy, path)
        policy_numbers = self.under(name, policy, path)
        check_names(policy, policy_numbers.dataset, str(path))
        if self._is_keyed(name, policy) and not policy.same_people_because:
            self._require_one_name(policy_numbers.dataset)
        return self._keep(name, Snapshot(policy_numbers, policy), beside)

    def _require_one_name(self, dataset: Dataset) -> None:
        """Refuse people whose numbers are made question by question where another dataset shows them, too.

        Each name draws numbers of its own, and their answers are counted apart.
        """
        for other in sorted(self._there(set(self.roles())) - {dataset.name}):
            population = self._population(other)
            if population is not None and population == dataset.population:
                raise DatasetError(
                    f"Datasets {dataset.name!r} and {other!r} are both of the population {population!r}, and "
                    "each name draws numbers of its own for the same people: serve one of them, or say in the "
                    "policy why both may be answered ('same_people_because')."
                )

    def _population(self, name: str) -> str | None:
        """Whose people a dataset says that it holds; looked up again where its files look otherwise."""
        places = [self.bundle_path(name) / MANIFEST]
        places += [] if self.root is None else [self.root / name / CURRENT]
        stamps = tuple(map(stamp_of, places))
        known = self._populations.get(name)
        if known is None or known[0] != stamps:
            try:
                known = stamps, self.description(name).population
            except LustrumError:  # one that cannot be read shows nothing
                return None
            self._populations[name] = known
        return known[1]

    def _as_below(
        self, name: str, policy: Policy, path: Path
    ) -> tuple[tuple[Path, Stamp | None], ...]:
        """The policies of lower roles, with how their files look; refused where one protects otherwise.

        The same people would have two numbers, and who has both roles could compare them.
        """
        files: list[tuple[Path, Stamp | None]] = []
        for role in ROLES[: ROLES.index(policy.role)]:
            lower = self.policy_path(name, role)
            stamp = stamp_of(lower)
            files.append((lower, stamp))
            if stamp is None:
                continue
            ours, theirs = policy.protection, self._policy(name, role).protection
            other = next((key for key in ours if ours[key] != theirs[key]), None)
            if other is not None:
                raise PolicyError(
                    f"{path} protects otherwise than {lower} ({other!r}), so that the same people would have "
                    "two numbers; policies for several roles differ in their rules and limits alone."
                )
        return tuple(files)

    def standing(self, name: str) -> Snapshot | None:
        """The snapshot of a bundle whose files look as they did when it was taken; nothing is read."""
        role = self.role_for(name)
        cached = None if role is None else self._standing.get((name, role))
        return cached.snapshot if cached is not None and cached.is_current() else None

    def _keep(
        self, name: str, snapshot: Snapshot, beside: tuple[tuple[Path, Stamp | None], ...]
    ) -> Snapshot:
        """Keep a snapshot of a bundle while its files look the same; a records service is asked each time."""
        folder, role = self.bundle_path(name), snapshot.policy.role
        with self._lock:
            opened, agreed = self._opened.get(folder), self._agreed.get((name, role))
            if opened is None:
                return snapshot
            # The numbers of the bundle itself, or those that a policy flags in its own way.
            bundle_numbers = (
                opened[1] if agreed is None or agreed[1] is not opened[1] else agreed[2]
            )
            if snapshot.numbers is not bundle_numbers:
                return snapshot
            stamps: list[tuple[Path, Stamp | None]] = [(folder / MANIFEST, opened[0]), *beside]
            if name not in self._named:
                path = self.policy_path(name, role)
                cached_policy = self._policies.get(path)
                if cached_policy is None or cached_policy.policy is not snapshot.policy:
                    return snapshot
                stamps.append((path, cached_policy.stamp))
            self._standing[name, role] = Standing(tuple(stamps), snapshot)
        return snapshot

    def under(self, name: str, policy: Policy, path: Path | None = None) -> ProtectedNumbers:
        """The protected numbers of a dataset under a policy, in force or not; ``path`` is where it stands."""
        if self._records is not None and self._is_keyed(name, policy):
            return KeyedNumbers(self._records, policy, self._records.describe(name))
        numbers = self._open(self.bundle_path(name))
        with self._lock:
            agreed = self._agreed.get((name, policy.role))
        # Compared once for each policy that was read and each bundle that was opened.
        if agreed is None or agreed[0] is not policy or agreed[1] is not numbers:
            _require_agreement(name, policy, numbers.bundle, path)
            agreed = (policy, numbers, numbers.flagged_by(policy))
            with self._lock:
                self._agreed[name, policy.role] = agreed
        return agreed[2]

    def _is_keyed(self, name: str, policy: Policy) -> bool:
        """Whether questions about a dataset go to its records, each protected by keys."""
        return policy.population is None and self._records is not None and name not in self._named

    def is_public(self) -> bool:
        """Whether every answer comes from a public bundle, so that no record stands behind any of them."""
        if self._records is None:
            return True
        try:
            return not any(
                self._is_keyed(name, self._policy(name, role)) for name, role in self._in_force()
            )
        except LustrumError:
            return False  # what cannot be read may be anything

    def unsealed(self) -> list[Path]:
        """The policies in force without a seal: a line that is deleted from one would leave a default."""
        paths = []
        for name, role in self._in_force():
            path = self.policy_path(name, role)
            with suppress(LustrumError):  # one that cannot be read is not in force
                if not _has_seal(path):
                    paths.append(path)
        return paths

    def _in_force(self) -> list[tuple[str, Role]]:
        """The policies of the folder whose datasets are there, for whomever they are."""
        written = self.roles()
        names = self._there(set(written)) - self._named.keys()
        return [(name, role) for name in sorted(names) for role in written[name]]

    def not_served(self) -> dict[str, LustrumError]:
        """The datasets that nothing can be answered about now, and why; some may only be not ready yet."""
        failures: dict[str, LustrumError] = {}
        with within(START):
            for role in dict.fromkeys(("public", *(role for _, role in self._in_force()))):
                with reading_as(Reader(role=role)):
                    for name in self.names():
                        try:
                            self.snapshot(name)
                        except LustrumError as error:
                            failures[name] = error
                        except Stopped:
                            failures[name] = FAILURES["silent"]
        return failures

    def other_searches(self) -> dict[str, int]:
        """The datasets whose bundle was made by another version of the search, with that version.

        They are served all the same: their numbers are as safe, and new ones would be a second release.
        """
        searches = {}
        for name in self._there(set(self.roles())):
            if name in self._named or name in self._in_bundles():
                with suppress(LustrumError), contained(f"Dataset {name!r}"):
                    searches[name] = other_search(self.bundle_path(name))
        return {name: search for name, search in searches.items() if search is not None}

    def prepared(self, name: str) -> PreparedFolder:
        """Prepared tables that may stand beside the flexible ones; refused where the same people would leak."""
        folder = self.prepared_folders.folder(name)
        check_other_folders(folder, self.prepared_folders.others(name))
        name_beside, written = folder.dataset, self.roles()
        # Whoever may ask about the dataset: prepared tables are everybody's.
        if name_beside in self._there(set(written)):
            # What is protected question by question has no bundle, whatever its records say: none are asked.
            named = name_beside in self._named
            role: Role = "public" if named else written[name_beside][0]
            keyed = not named and self._is_keyed(name_beside, self._policy(name_beside, role))
            with reading_as(Reader(role=role)):
                digest = None if keyed else self.snapshot(name_beside).numbers.mark
            check_one_population(folder, {name_beside: digest})
        return folder

    def check_replacement(self, dataset: Dataset) -> None:
        """Refuse a new description of a dataset where the policy in force names what it does not have."""
        for role in ROLES:
            path = self.policy_path(dataset.name, role)
            with outages(path):
                there = path.is_file()
            if there:
                check_names(read_policy(path), dataset, str(path))

    def forget_policies(self) -> None:
        """Read every policy again before the next question, even if its file looks the same."""
        with self._lock:
            self._policies.clear()
            self._standing.clear()

    def answer(self, query: TableQuery) -> Decision:
        return self.snapshot(query.dataset).answer(query)

    def in_parts(self, name: str) -> bool:
        """Whether the cells of a dataset that was opened stay in their file until a question needs them."""
        with self._lock:
            opened = [numbers for _, numbers in self._opened.values()]
        return any(numbers.in_parts and numbers.dataset.name == name for numbers in opened)

    def mark(self, name: str) -> str:
        return self.snapshot(name).mark

    def precheck(self, query: TableQuery, *, count: bool = True) -> Precheck:
        return self.snapshot(query.dataset).precheck(query, count=count)

    def _in_bundles(self) -> set[str]:
        if self.root is None:
            return set()
        with outages(self.root):
            return bundles_in(self.root / BUNDLES)

    def _policy(self, name: str, role: Role) -> Policy:
        path = self.policy_path(name, role)
        stamp = stamp_of(path)
        if stamp is None:
            raise DatasetError(
                f"Dataset {name!r} has no policy, so nothing about it is published; write {path}."
            )
        with self._lock:
            cached = self._policies.get(path)
        if cached is None or cached.stamp != stamp:
            is_new = cached is None
            cached = ReadPolicy(stamp, read_policy(path, sealed_only=self.sealed_only))
            if cached.policy.role != role:
                raise PolicyError(
                    f"{path} says role = {cached.policy.role!r}, and a file of this name serves {role!r}; "
                    "name the role in both, so that a file in a wrong place serves nobody."
                )
            if not is_new and not _has_seal(path):
                log.warning("the policy %s was changed, and is in force without a seal", path)
            with self._lock:
                self._policies[path] = cached
        return cached.policy

    def _open(self, path: Path) -> BundleNumbers:
        """A bundle; read again when its manifest changed."""
        place = standing(path)
        stamp = stamp_of(place / MANIFEST)
        with self._lock:
            cached = self._opened.get(path)
            if cached is None and not place.exists():
                raise NotMadeError(
                    f"{path} is not made yet; 'lustrum protect --dataset {path.name}' makes it."
                )
            if stamp is None or cached is None or cached[0] != stamp:
                bundle = read_bundle(path)
                if bundle.sums is not None and bundle.sums.unsafe is not None:
                    log.warning("the bundle %s: %s", path, bundle.sums.unsafe)
                cached = self._opened[path] = (
                    stamp or (0, 0, 0),
                    BundleNumbers(bundle, self._workers),
                )
            return cached[1]


def _has_seal(path: Path) -> bool:
    with outages(path):
        return is_sealed(path.read_bytes())


def _require_agreement(name: str, policy: Policy, bundle: Bundle, path: Path | None) -> None:
    """Refuse a bundle of another dataset, a policy that asks for another protection, and unsafe sums."""
    again = f"make it again with 'lustrum protect --dataset {name}'"
    if bundle.dataset.name != name:
        raise DatasetError(
            f"The bundle of {name!r} is one of the dataset {bundle.dataset.name!r}; {again}."
        )
    mismatch = difference(
        policy,
        bundle.policy,
        bundle.made,
        sums=bundle.sums is not None,
        respondents=bundle.respondents is not None,
    )
    if mismatch is not None:
        raise PolicyError(mismatch.sentence(name, _where(path, mismatch.path)))
    if bundle.sums is not None and bundle.sums.unsafe is not None:
        raise DatasetError(f"The bundle of {name!r} is not served. {bundle.sums.unsafe}")


def _where(path: Path | None, key_path: tuple[str | int, ...]) -> str:
    """The file and the line of a place in a policy."""
    if path is None:
        return "The policy"
    try:
        line = line_of(path.read_text(encoding="utf-8"), key_path)
    except (OSError, ValueError):
        line = None
    return str(path) if line is None else f"{path}, line {line}"
