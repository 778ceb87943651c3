"""The service: where questions come in, with the datasets and policies behind it.

::

    <root>/policies/<dataset>.toml   what the agency decided about a dataset
    <root>/bundles/<dataset>/        its public bundle, where the policy asks for a protected population
    <root>/prepared/<programme>/     prepared tables, see lustrum.public.prepared
    <root>/<dataset>/...             its records; see lustrum.publish.records, which opens them

Bundles can be named without such a folder: then there need not be any records on the machine. A dataset, a
bundle or a policy that was replaced is taken up at the next question. A dataset without a policy answers
nothing. The service itself never opens a record: it counts protected cells, or asks a records
service, by default one in a separate process, for protected numbers.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lustrum._version import __version__
from lustrum.answer.pipeline import answer
from lustrum.answer.precheck import Precheck, precheck
from lustrum.answer.prepared import PreparedShelf, check_one_population, check_other_folders
from lustrum.answer.protection import Protection, protection_of
from lustrum.answer.separate_process import SeparateRecordsService
from lustrum.data_folder import BUNDLES, POLICIES
from lustrum.durable import outages
from lustrum.model import (
    Dataset,
    DatasetError,
    Decision,
    LustrumError,
    PolicyError,
    QueryError,
    TableQuery,
)
from lustrum.model.errors import NotReadyError, choices
from lustrum.policy import Policy, check_names, read_policy
from lustrum.policy.read import is_sealed, line_of
from lustrum.public.bundle.agreement import difference
from lustrum.public.bundle.files import (
    Bundle,
    bundle_name,
    is_made_by,
    other_search,
    read_bundle,
)
from lustrum.public.bundle.numbers import BundleNumbers
from lustrum.public.bundle.place import MANIFEST, bundles_in, standing
from lustrum.public.numbers import KeyedNumbers, ProtectedNumbers, RecordsService
from lustrum.public.prepared import PreparedFolder

__all__ = ["TableService"]

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class _Kept:
    stamp: Stamp
    policy: Policy


class TableService:
    """Answers questions about the datasets of a folder, and about bundles; safe to share between threads."""

    def __init__(
        self,
        root: Path | None = None,
        workers: int | None = None,
        *,
        records: RecordsService | None = None,
        bundles: Sequence[Path] = (),
        prepared: Sequence[Path] = (),
        folder: Path | None = None,
        sealed_only: bool = False,
    ) -> None:
        self.root = root
        self.sealed_only = sealed_only
        """Whether policies without a seal are refused."""
        self.bundles = tuple(bundles)
        self.shelf = PreparedShelf(root, prepared)
        """The prepared tables that are there; :meth:`prepared` opens those that may be served."""
        self._workers = workers
        self._records = records or (None if root is None else SeparateRecordsService(root, workers))
        self._lock = threading.Lock()
        self._policies: dict[Path, _Kept] = {}
        self._opened: dict[Path, tuple[Stamp, BundleNumbers]] = {}
        self._named: dict[str, Path] = {}
        self._agreed: dict[str, tuple[Policy, BundleNumbers]] = {}
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

    def check_in_background(self) -> None:
        """Check large datasets in the background from now on, as a server does."""
        if self._records is not None:
            self._records.check_in_background()

    def states(self) -> dict[str, str]:
        """Of each dataset, whether it is ``ready``, still ``checking`` or ``unavailable``."""
        found = {}
        for name in self.names():
            try:
                self.in_force(name)
                found[name] = "ready"
            except NotReadyError:
                found[name] = "checking"
            except LustrumError:
                found[name] = "unavailable"
        return found

    def policy_path(self, name: str) -> Path:
        """Where the policy of a dataset of the folder stands."""
        assert self.root is not None
        return self.root / POLICIES / f"{name}.toml"

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
        found = set(self._named)
        if self.root is not None:
            with outages(self.root):
                written = {path.stem for path in (self.root / POLICIES).glob("*.toml")}
            bundled = written & self._in_bundles()
            found |= bundled
            if written - bundled and self._records is not None:
                found |= written & set(self._records.names())
        return sorted(found)

    def datasets(self) -> list[Dataset]:
        """Their descriptions."""
        return [self.dataset(name) for name in self.names()]

    def dataset(self, name: str) -> Dataset:
        """The description of one; a clear error where there is none."""
        return self.in_force(name)[0].dataset

    def description(self, name: str) -> Dataset:
        """The description of a dataset whatever its policy says, for the agency that writes one."""
        if self._records is not None and name in self._records.names():
            return self._records.describe(name).dataset
        return self._open(self.bundle_path(name)).dataset

    def policy(self, name: str) -> Policy:
        """The policy in force; read again when it changed."""
        return self.in_force(name)[1]

    def in_force(self, name: str) -> tuple[ProtectedNumbers, Policy]:
        """The numbers, with the policy that was checked against the very same version of the data."""
        if name in self._named:
            numbers = self._open(self._named[name])
            return numbers, numbers.bundle.policy
        # The part that holds the records is asked only where no bundle stands.
        if name not in self._in_bundles() and name not in self.described():
            raise QueryError(f"There is no dataset {name!r}; {choices(name, self.names())}.")
        policy = self._policy(name)
        found = self.under(name, policy, self.policy_path(name))
        check_names(policy, found.dataset, str(self.policy_path(name)))
        return found, policy

    def under(self, name: str, policy: Policy, path: Path | None = None) -> ProtectedNumbers:
        """The protected numbers of a dataset under a policy, in force or not; ``path`` is where it stands."""
        if policy.population is None and self._records is not None and name not in self._named:
            return KeyedNumbers(self._records, policy, self._records.describe(name))
        numbers = self._open(self.bundle_path(name))
        with self._lock:
            agreed = self._agreed.get(name)
        # Compared once for each policy that was read and each bundle that was opened.
        if agreed is None or agreed[0] is not policy or agreed[1] is not numbers:
            _require_agreement(name, policy, numbers.bundle, path)
            with self._lock:
                self._agreed[name] = (policy, numbers)
        return numbers

    def unsealed(self) -> list[Path]:
        """The policies in force without a seal: a line that is deleted from one would leave a default."""
        found = []
        for name in self.names():
            if name not in self._named:
                path = self.policy_path(name)
                with outages(path):
                    raw = path.read_bytes()
                if not is_sealed(raw):
                    found.append(path)
        return found

    def unavailable(self) -> dict[str, str]:
        """The datasets that nothing can be answered about, and why; those still being checked are left out."""
        found = {}
        for name in self.names():
            try:
                self.in_force(name)
            except NotReadyError:
                continue
            except LustrumError as error:
                found[name] = str(error)
        return found

    def other_searches(self) -> dict[str, int]:
        """The datasets whose bundle was made by another version of the search, with that version.

        They are served all the same: their numbers are as safe, and new ones would be a second release.
        """
        found = {
            name: other_search(self.bundle_path(name))
            for name in self.names()
            if name in self._named or name in self._in_bundles()
        }
        return {name: search for name, search in found.items() if search is not None}

    def prepared(self, name: str) -> PreparedFolder:
        """Prepared tables that may stand beside the flexible ones; refused where the same people would leak."""
        folder = self.shelf.folder(name)
        check_other_folders(folder, self.shelf.others(name))
        if folder.dataset in self.names():
            numbers, _ = self.in_force(folder.dataset)
            digest = numbers.mark if isinstance(numbers, BundleNumbers) else None
            check_one_population(folder, {folder.dataset: digest})
        return folder

    def check_replacement(self, dataset: Dataset) -> None:
        """Refuse a new description of a dataset where the policy in force names what it does not have."""
        path = self.policy_path(dataset.name)
        with outages(path):
            there = path.is_file()
        if there:
            check_names(read_policy(path), dataset, str(path))

    def protection(self, name: str) -> Protection | None:
        """The public report of a dataset that is served from a bundle; None for one that is not."""
        numbers = self.in_force(name)[0]
        return protection_of(numbers.bundle) if isinstance(numbers, BundleNumbers) else None

    def forget_policies(self) -> None:
        """Read every policy again before the next question, even if its file looks the same."""
        with self._lock:
            self._policies.clear()

    def answer(self, query: TableQuery) -> Decision:
        """An answer or a refusal, under the policy in force."""
        return answer(query, *self.in_force(query.dataset))

    def sums(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The measures, the weights and the weighted measures of which a dataset has protected numbers."""
        numbers, _ = self.in_force(name)
        return numbers.measures, numbers.weights, numbers.weighted_measures

    def mark(self, name: str) -> str:
        """Names the numbers and the policy in force: while it is the same, a question has the same answer."""
        numbers, policy = self.in_force(name)
        digest = hashlib.sha256(policy.model_dump_json().encode()).hexdigest()[:16]
        return f"{numbers.mark} {digest} {__version__}"

    def precheck(self, query: TableQuery, *, count: bool = True) -> Precheck:
        """What the rules would say."""
        return precheck(query, *self.in_force(query.dataset), count=count)

    def _in_bundles(self) -> set[str]:
        if self.root is None:
            return set()
        with outages(self.root):
            return bundles_in(self.root / BUNDLES)

    def _policy(self, name: str) -> Policy:
        path = self.policy_path(name)
        stamp = _stamp(path)
        if stamp is None:
            raise DatasetError(
                f"Dataset {name!r} has no policy, so nothing about it is published; write {path}."
            )
        with self._lock:
            kept = self._policies.get(path)
        if kept is None or kept.stamp != stamp:
            kept = _Kept(stamp, read_policy(path, sealed_only=self.sealed_only))
            with self._lock:
                self._policies[path] = kept
        return kept.policy

    def _open(self, path: Path) -> BundleNumbers:
        """A bundle; read again when its manifest changed."""
        stamp = _stamp(standing(path) / MANIFEST)
        with self._lock:
            kept = self._opened.get(path)
            if stamp is None or kept is None or kept[0] != stamp:
                bundle = read_bundle(path)
                kept = self._opened[path] = (
                    stamp or (0, 0, 0),
                    BundleNumbers(bundle, self._workers),
                )
            return kept[1]


def _require_agreement(name: str, policy: Policy, bundle: Bundle, path: Path | None) -> None:
    """Refuse a bundle of another dataset, and a policy that asks for another protection than the bundle has."""
    again = f"make it again with 'lustrum protect --dataset {name}'"
    if bundle.dataset.name != name:
        raise DatasetError(
            f"The bundle of {name!r} is one of the dataset {bundle.dataset.name!r}; {again}."
        )
    found = difference(
        policy,
        bundle.policy,
        sums=bundle.sums is not None,
        respondents=bundle.respondents is not None,
    )
    if found is not None:
        raise PolicyError(found.sentence(name, _where(path, found.place)))
    if not is_made_by(bundle.report.method, policy):
        raise PolicyError(
            f"The bundle of {name!r} was made by another method than its policy names; {again}."
        )


def _where(path: Path | None, place: tuple[str | int, ...]) -> str:
    """The file and the line of a place in a policy."""
    if path is None:
        return "The policy"
    try:
        line = line_of(path.read_text(encoding="utf-8"), place)
    except (OSError, ValueError):
        line = None
    return str(path) if line is None else f"{path}, line {line}"


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
