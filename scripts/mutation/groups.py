"""Modules where a wrong line leaks or misstates a bound, and the tests that must notice it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """Modules that are mutated together and the tests that must notice.

    With ``loops`` the compiler is turned off, so that compiled loops run as plain Python and can be changed.
    ``only`` chooses among the tests, as ``pytest -k`` does. ``patience`` is how many seconds of the clock a
    test of a mutant may take where mutants often wait for ever; without it the clock hardly ever decides.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    loops: bool = False
    only: str = ""
    patience: int = 0


def _in(room: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{room}/{name}.py" for name in names)


_TOTALS = (
    "tests/protect/test_reader_of_totals.py",
    "tests/protect/test_bounds_of_totals.py",
    "tests/protect/test_safe_totals.py",
)
_CELL_KEY = (
    *_TOTALS,
    "tests/protect/test_cell_key_lookup.py",
    "tests/protect/test_cell_key.py",
    "tests/protect/test_cell_key_additive.py",
    "tests/protect/test_cell_key_magnitudes.py",
    "tests/protect/test_conformance.py",
    "tests/protect/test_entropy_left.py",
)
_BOUNDS = (
    "tests/audit/test_sweep_by_hand.py",
    "tests/audit/test_rounds_by_hand.py",
    "tests/audit/test_bounds_hold.py",
)
_NETWORK = (
    "tests/audit/test_flows_by_hand.py",
    "tests/audit/test_bounds_hold.py",
    "tests/audit/test_network.py",
)

_RECOGNITION = (
    "tests/formats/test_totals_by_hand.py",
    "tests/formats/test_published_files.py",
)
_TABLES_READ = (
    "tests/formats/test_files_by_hand.py",
    "tests/formats/test_reading_by_hand.py",
    "tests/formats/test_published_files.py",
)


def _answer(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/answer/test_{name}.py" for name in names)


def _public(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/public_room/test_{name}.py" for name in names)


def _formats(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/formats/test_{name}.py" for name in names)


def _programme(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/publish/programme/test_{name}.py" for name in names)


def _publish(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/publish/test_{name}.py" for name in names)


def _audit(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/audit/test_{name}.py" for name in names)


def _risk(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/risk/test_{name}.py" for name in names)


_POPULATION = (
    "tests/protect/population/test_reports_by_hand.py",
    "tests/protect/population/test_later.py",
    "tests/protect/population/test_support.py",
    "tests/answer/test_figures_at_once.py",
    "tests/public_room/test_bundle_files_by_hand.py",
)
_SUPPRESSION = tuple(
    f"tests/protect/suppression/test_{name}.py"
    for name in ("ranges_by_hand", "attackers", "audit_by_enumeration")
)

GROUPS = {
    "cell-key": Group(
        _in("protect/cell_key", "counts", "channel", "zeros", "noise", "ptable"),
        _CELL_KEY,
        only="not keeps_the_contracts or cell-key",
    ),
    "cell-key-loops": Group(
        _in("protect/cell_key", "channel"), ("tests/protect/test_cell_key_lookup.py",), loops=True
    ),
    "bounds": Group(_in("audit/bounding", "compute", "sweep"), _BOUNDS),
    "lattice": Group(
        _in("audit/bounding", "lattice", "elimination") + _in("audit/knowledge", "independent"),
        ("tests/audit/test_lattice_by_hand.py",),
        loops=True,
    ),
    "knowledge": Group(
        _in("audit/knowledge", "facts", "reduce", "published"),
        (
            "tests/audit/test_flows_by_hand.py",
            "tests/audit/test_sweep_by_hand.py",
            "tests/audit/test_knowledge_by_hand.py",
            "tests/audit/test_knowledge.py",
            "tests/audit/test_report_by_hand.py",
        ),
    ),
    "verify": Group(
        _in("audit/certificate", "verify"), ("tests/audit/test_certificate_by_hand.py",)
    ),
    "certificates": Group(
        _in("audit/certificate", "exact", "linear", "branch", "basis", "document", "make")
        + _in("audit/certificate", "propose"),
        ("tests/audit/test_certificate_makers.py",),
    ),
    "rules": Group(
        _in("answer", "pipeline", "precheck", "preliminary", "question_state")
        + _in("answer", "coarsen"),
        (
            *_answer("limits", "rules", "sum_figures", "carried"),
            "tests/policy/test_floor_of_change.py",
        ),
    ),
    "figures": Group(
        _in("answer/figures", "counts"),
        _answer("figures_kept", "figures", "figures_at_once"),
    ),
    "belief-loops": Group(
        _in("answer/figures", "belief_loops"),
        _answer("figures_at_once"),
        loops=True,
        only="compiled_beliefs or look_alike",
    ),
    "many-tables": Group(
        _in("risk", "table_entropy_batch"), _answer("figures_at_once"), loops=True
    ),
    "statistics": Group(
        _in("answer/statistics", "compose", "quantiles"),
        _answer("quotients", "quantiles", "carried"),
    ),
    "service": Group(
        _in("answer", "table_service"),
        (
            *_answer("service_by_hand", "table_service", "agreement", "prepared_by_hand"),
            *(f"tests/server/test_{name}.py" for name in ("bundle", "damage", "gone")),
            "tests/cli/test_production.py",
        ),
        patience=15,
    ),
    "separate": Group(
        _in("answer", "separate_process", "records_line", "replay"),
        _answer("pipe_by_hand", "changes_by_hand", "replay"),
        patience=15,
    ),
    "bundle": Group(
        _in("public/bundle", "numbers", "known", "sums") + _in("answer", "protection"),
        _public("bundle_numbers", "bundle_survey_by_hand") + _answer("figures_at_once"),
    ),
    "bundle-files": Group(
        _in("public/bundle", "files", "layout", "place")
        + _in("publish", "folders")
        + _in("publish/bundles", "write"),
        _public("bundle_files_by_hand", "prepared_by_hand") + _answer("service_by_hand"),
    ),
    "bundle-survey": Group(
        _in("public/bundle", "respondents", "weighted"), _public("bundle_survey_by_hand")
    ),
    "records": Group(
        _in("publish/records", "protected_input", "views"),
        _publish("input_by_hand", "views_by_hand"),
    ),
    "records-files": Group(
        _in("publish/records", "true_figures", "local")
        + _in("publish/bundles", "survey", "memory", "make")
        + _in("publish/records", "open_datasets", "process"),
        _publish("records_files_by_hand", "make_bundle_by_hand"),
        patience=20,
    ),
    "twins": Group(_in("audit/bounding", "twins"), _audit("twins_by_hand", "twins"), loops=True),
    "network": Group(_in("audit/bounding", "network"), _NETWORK),
    "network-loops": Group(_in("audit/bounding", "network_kernels"), _NETWORK[:1], loops=True),
    "safe-totals": Group(_in("protect/totals", "safe", "summed"), _TOTALS),
    "inner-table": Group(
        _in("protect/totals", "inner_table", "axis_parts"),
        ("tests/protect/test_inner_table_by_hand.py",),
    ),
    "closed": Group(
        _in("audit/closed", "bonferroni", "choose", "decomposable", "dichotomous", "frechet")
        + _in("audit/closed", "graphs", "margins", "reducible", "two_way"),
        _audit("closed_by_hand", "closed"),
    ),
    "protection": Group(
        _in("audit", "protection", "contribution"),
        _audit("contribution_by_hand", "protection", "contribution"),
    ),
    "belief": Group(
        _in("audit", "attacking", "attackers")
        + _in("audit/belief", "belief", "posterior", "priors", "channels"),
        _audit("belief_by_hand", "attack", "belief", "posterior"),
    ),
    "responses": Group(
        _in("audit/knowledge", "responses"), _audit("responses_by_hand", "responses")
    ),
    "conflicts": Group(
        _in("audit/knowledge", "conflicts"), _audit("conflicts_by_hand", "bounds_infeasible")
    ),
    "report": Group(
        _in("audit", "report", "best"), _audit("report_by_hand", "report", "best", "protection")
    ),
    "shuttle": Group(
        _in("audit/shuttle", "search", "effort", "lines", "lattice", "kernels"),
        _audit("shuttle_by_hand", "shuttle_loops_by_hand", "shuttle_search_by_hand"),
        loops=True,
    ),
    "fibre": Group(
        _in("audit/fibre", "diagnostics", "system", "moves", "start", "two_way", "basic")
        + _in("audit/fibre", "sampler", "distribution", "enumerate", "margins", "unimodal")
        + _in("audit/fibre", "limits"),
        _audit("fibre_margins_by_hand", "fibre_blocks_by_hand", "fibre_walks_by_hand")
        + _audit("fibre_chances_by_hand", "fibre_loops_by_hand"),
    ),
    "fibre-loops": Group(
        _in("audit/fibre", "kernels", "walk", "compiled"),
        _audit("fibre_blocks_by_hand", "fibre_chances_by_hand", "fibre_loops_by_hand"),
        loops=True,
    ),
    "lattice-walk": Group(
        _in("audit/bounding", "lattice_walk", "lattice_walk_kernels"),
        _audit("lattice_walk_by_hand"),
        loops=True,
    ),
    "cubes": Group(
        _in(
            "numeric/structure", "families", "ragged", "rank", "atoms", "complete", "cube", "linked"
        )
        + _in("numeric/structure", "layout", "fields"),
        tuple(
            f"tests/structure/test_{name}.py"
            for name in (
                "cubes_by_hand",
                "families",
                "ragged",
                "distinct",
                "rank",
                "atoms",
                "relations_by_hand",
            )
        ),
    ),
    "estimates": Group(
        _in("risk", "estimate", "slices", "close_estimates", "choose", "measure"),
        (
            *_risk("estimates_by_hand", "estimate", "slices", "sample_risk"),
            "tests/test_front_door.py",
        ),
    ),
    "batch-loops": Group(_in("risk", "batch"), _risk("estimates_by_hand"), loops=True),
    "populations": Group(
        _in("risk/population", "model", "loglinear", "polya", "known"),
        _risk("populations_by_hand", "population_draws", "population_loglinear"),
    ),
    "population-loops": Group(
        _in("risk/population", "alias", "kernels"), _risk("populations_by_hand"), loops=True
    ),
    "lines": Group(
        _in("protect/totals", "lines"), ("tests/protect/test_lines_by_hand.py",), loops=True
    ),
    "narrowing": Group(
        _in("numeric/structure", "intervals", "kernels"),
        ("tests/structure/test_kernels_by_hand.py",),
        loops=True,
    ),
    "structure": Group(
        _in("numeric/structure", "relations", "incidence", "build"),
        tuple(
            f"tests/structure/test_{name}.py"
            for name in ("relations_by_hand", "relations", "incidence")
        ),
    ),
    "population": Group(
        _in("protect/population", "support", "candidates", "readers", "channel", "public"),
        _POPULATION,
    ),
    "population-start": Group(
        _in("protect/population", "start", "prepare", "together")
        + _in("protect/population/later", "before", "again", "continued", "refined", "differences"),
        (
            "tests/protect/population/test_start_by_hand.py",
            "tests/protect/population/test_later.py",
        ),
    ),
    "population-search": Group(
        _in("protect/population/search", "run", "kernels", "exchanges", "replay", "lanes", "walk")
        + _in("protect/population/search", "moves", "forces", "stages", "levels", "chosen")
        + _in("protect/population/search", "layout"),
        (
            "tests/protect/population/test_moves_by_hand.py",
            "tests/protect/population/test_search_by_hand.py",
        ),
        loops=True,
    ),
    "table-entropy": Group(
        _in("risk", "table_entropy"),
        (*_risk("table_entropy"), *_answer("figures_at_once"), "tests/test_front_door.py"),
    ),
    "risk": Group(
        _in("risk", "r1", "r2", "simple", "entropy", "cell_entropy", "counts", "cell_certainty"),
        (
            "tests/risk/test_measures_by_hand.py",
            "tests/risk/test_certainty_by_hand.py",
            "tests/risk/test_r1.py",
            "tests/risk/test_r2.py",
            "tests/risk/test_simple.py",
            "tests/risk/test_cell_entropy.py",
            "tests/risk/test_cell_certainty.py",
            "tests/test_front_door.py",
        ),
    ),
    "suppression": Group(_in("protect/suppression", "check", "attackers"), _SUPPRESSION),
    "sensitivity": Group(
        _in("sensitivity/rules", "threshold", "dominance", "p_percent", "prior_posterior")
        + _in("sensitivity/rules", "k_disclosure")
        + _in("sensitivity", "ranked"),
        tuple(
            f"tests/sensitivity/test_{name}.py"
            for name in ("ranked_by_hand", "boundaries", "rules", "threshold", "engine", "lines")
        ),
    ),
    "rounding": Group(
        _in("protect/rounding", "random", "conventional", "small_counts", "semi_controlled"),
        (
            "tests/protect/test_rounding_by_hand.py",
            "tests/protect/test_random_rounding.py",
            "tests/protect/test_conventional_rounding.py",
            "tests/protect/test_small_count_rounding.py",
            "tests/protect/test_semi_controlled_rounding.py",
            "tests/protect/test_reader_of_totals.py",
            "tests/protect/test_entropy_left.py",
        ),
    ),
    "perturbation": Group(
        _in("protect/perturbation", "spec", "lookup"),
        ("tests/protect/test_perturbation_by_hand.py", "tests/protect/test_entropy_left.py"),
        loops=True,
    ),
    "magnitudes": Group(
        _in("protect/magnitudes", "check", "factors", "method", "units"),
        ("tests/protect/magnitudes/test_contributions_by_hand.py",),
        loops=True,
    ),
    "magnitudes-classes": Group(
        _in("protect/magnitudes", "check", "method", "units"),
        tuple(
            f"tests/protect/magnitudes/test_{name}.py"
            for name in ("classes", "method", "remembered", "large_firms")
        ),
    ),
    "magnitudes-search": Group(
        _in("protect/magnitudes", "search", "kernels", "carry_kernel", "carriers", "families")
        + _in("protect/magnitudes", "held", "remembered", "public_errors"),
        (
            "tests/protect/magnitudes/test_carriers_by_hand.py",
            "tests/protect/magnitudes/test_search_by_hand.py",
            "tests/protect/magnitudes/test_remembered.py",
        ),
        loops=True,
    ),
    "weight-classes": Group(
        _in("protect/weighted", "classes"), ("tests/protect/weighted/test_classes_by_hand.py",)
    ),
    "survey": Group(
        _in("protect/weighted", "method", "respondents"),
        (
            "tests/public_room/test_bundle_survey_by_hand.py",
            "tests/protect/weighted/test_survey_by_hand.py",
        ),
    ),
    "policy": Group(_in("policy", "check", "policy", "read"), ("tests/policy",)),
    "archive": Group(_in("answer", "archive"), _answer("archive")),
    "noise": Group(_in("public", "noise"), _answer("sum_figures")),
    "sum-figures": Group(
        _in("answer/figures", "sums"),
        _answer("sum_figures", "carried_figures", "carried", "sum_figures_by_hand"),
    ),
    "programme": Group(
        _in("publish/programme", "judge", "audit"),
        ("tests/publish/programme/test_judge_and_moves.py",),
    ),
    "prepared": Group(
        _in("public/prepared", "folder", "table_words") + _in("publish", "prepared"),
        _public("prepared_by_hand"),
    ),
    "jobs": Group(_in("server/service", "jobs"), ("tests/server/test_jobs.py",), patience=60),
    "table-files": Group(
        _in("readers", "releases"),
        (
            "tests/formats/test_releases_by_hand.py",
            "tests/formats/test_status_letters.py",
            "tests/formats/test_files_by_hand.py",
        ),
    ),
    "shared-means": Group(
        _in("protect/weighted", "values", "means"),
        ("tests/protect/weighted/test_shared_means.py",),
    ),
    "writers": Group(
        _in("formats", "cell_text", "csv", "jsonstat", "parquet"),
        _formats("writers", "cell_text", "formats", "never_zero", "parquet", "statistics"),
    ),
    "workbooks": Group(
        _in("formats", "xlsx", "xlsx_large"),
        _formats("workbooks", "statistics"),
    ),
    "frames": Group(
        _in("formats", "frames") + _in("local", "protected_table"),
        (*_formats("frames"), "tests/local/test_crosstabs_by_hand.py"),
    ),
    "crosstabs": Group(
        _in("local", "crosstabs", "secrets"),
        ("tests/local/test_crosstabs_by_hand.py",),
        only="not polars",  # its threads do not live on in the child of a process
        patience=15,
    ),
    "kinds": Group(
        _in("public/bundle", "agreement", "kinds", "sample_risk") + _in("public", "numbers"),
        _public("kinds_by_hand"),
    ),
    "prepared-beside": Group(
        _in("answer/prepared", "one_population", "folders"),
        _answer("prepared_by_hand"),
    ),
    "programme-read": Group(
        _in("publish/programme", "read", "together", "hierarchies"),
        _programme("read", "together", "hierarchies"),
    ),
    "programme-system": Group(
        _in("publish/programme", "system", "published", "without_cube"),
        _programme("system_by_hand"),
    ),
    "programme-protect": Group(
        _in("publish/programme", "suppress", "protect"), _programme("protect_by_hand")
    ),
    "programme-run": Group(
        _in("publish/programme", "run", "files", "trace", "source") + _in("publish", "waivers"),
        _programme("run_by_hand", "read"),
    ),
    "suppressed-files": Group(
        _in("publish/suppression", "files", "inputs", "long_search", "read_back", "tables"),
        _publish("suppression_by_hand", "long_search"),
    ),
    "release-memories": Group(
        _in("publish/bundles", "history", "sum_memory") + _in("publish/records", "keyed_weights"),
        _publish("memories_by_hand"),
    ),
    "suppressed-frames": Group(_in("publish", "frames"), _publish("frames_by_hand")),
    "report-findings": Group(
        _in("publish/report", "findings", "questions", "sums"), _publish("findings_by_hand")
    ),
    "doctor": Group(_in("publish", "doctor"), _publish("doctor_by_hand")),
    "letters": Group(
        _in("readers", "status_letters", "levels"),
        ("tests/formats/test_status_letters.py", "tests/formats/test_reading_by_hand.py"),
    ),
    "printed-values": Group(
        _in("readers/published", "number_text", "values", "reading"),
        (
            "tests/formats/test_published_numbers.py",
            "tests/formats/test_published_files.py",
            "tests/formats/test_reading_by_hand.py",
            "tests/formats/test_files_by_hand.py",
        ),
    ),
    "contributions-read": Group(
        _in("readers", "contributions"), ("tests/formats/test_contributions.py",)
    ),
    "sums-read": Group(_in("readers", "sums"), _RECOGNITION),
    "hidden-totals": Group(_in("readers", "hidden_totals"), _RECOGNITION),
    "number-groups": Group(_in("readers", "numbers"), _RECOGNITION),
    "recognition": Group(_in("readers", "recognition"), _RECOGNITION),
    "code-groups": Group(
        _in("readers", "code_groups", "dimensions", "hierarchy_files"),
        (*_RECOGNITION, "tests/formats/test_table_files.py"),
    ),
    "table-file": Group(_in("readers", "table_file"), _TABLES_READ),
    "published-file": Group(_in("readers", "published_file"), _TABLES_READ),
    "columns": Group(_in("readers", "columns"), _TABLES_READ),
    "rows": Group(_in("readers", "rows"), _TABLES_READ),
    "layouts": Group(
        _in("readers/published", "layouts") + _in("readers", "read"),
        _TABLES_READ,
    ),
    "formulas": Group(_in("readers/published", "formulas"), _TABLES_READ),
    "table-writing": Group(_in("readers", "write"), _TABLES_READ),
}
