"""The unit and the container file give the server the least rights that it needs."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from lustrum.cli import app

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = DEPLOY / "lustrum.service"
CONTAINER = DEPLOY / "Containerfile"
CLUSTER = DEPLOY / "kubernetes.yaml"


def settings() -> dict[str, str]:
    reader = configparser.RawConfigParser(strict=False)
    reader.optionxform = str  # type: ignore[assignment, method-assign]
    reader.read_string(UNIT.read_text())
    return dict(reader["Service"])


def options_of(command: str) -> set[str]:
    return set(re.findall(r"--[a-z-]+", command))


def known_options() -> set[str]:
    from typer.main import get_command

    serve = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    return {option for parameter in serve.params for option in parameter.opts}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_reads_the_unit_and_finds_little_exposed(tmp_path: Path) -> None:
    unit = tmp_path / "lustrum.service"
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text(), flags=re.M))
    read = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    about = [line for line in read.stderr.splitlines() if "lustrum.service" in line]
    assert about == []
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=15", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout[-300:]


def test_the_unit_runs_without_rights_and_starts_again() -> None:
    found = settings()
    assert found["User"] == "lustrum"
    assert found["NoNewPrivileges"] == "yes"
    assert found["CapabilityBoundingSet"] == ""
    assert found["ProtectSystem"] == "strict"
    assert "record-keys.secret" in found["ReadOnlyPaths"]
    assert found["Restart"] == "always"
    assert found["UMask"] == "0077"
    assert options_of(found["ExecStart"]) <= known_options()


def test_the_system_watches_the_server() -> None:
    found = settings()
    assert found["Type"] == "notify"
    assert found["NotifyAccess"] == "all"
    # Two workers that hang take a minute each to be found by their parent.
    assert int(found["WatchdogSec"]) >= 150
    assert "AF_UNIX" in found["RestrictAddressFamilies"]  # by which it is told


def test_the_container_is_healthy_only_where_questions_are_answered() -> None:
    (check,) = [rest for word, rest in instructions(CONTAINER.read_text()) if word == "HEALTHCHECK"]
    assert "/health/ready" in check


def test_the_container_compiles_when_it_is_built_and_not_when_it_starts() -> None:
    build, last = CONTAINER.read_text().split("FROM ")[1:]
    assert "-m lustrum.cli.warm" in build
    for stage in (build, last):
        # The loops are found again: the same folder, and any processor of this kind.
        assert "NUMBA_CACHE_DIR=/var/cache/lustrum" in stage
        assert "NUMBA_CPU_NAME=generic" in stage
    assert "COPY --from=build --chown=10001:10001 /var/cache/lustrum /var/cache/lustrum" in last
    # Layers keep whole seconds, and a loop is compiled again where its file has another time.
    assert build.index("touch -d") < build.index("-m lustrum.cli.warm")


def test_the_container_runs_as_nobody_from_pinned_packages() -> None:
    text = CONTAINER.read_text()
    last = text.split("FROM ")[-1]
    assert re.search(r"^USER 10001:10001$", last, flags=re.M)
    assert "--require-hashes --no-deps" in text
    assert "--only-binary :all:" in text
    assert not re.search(r"^ADD ", text, flags=re.M)
    assert not re.search(r"https?://(?!127\.0\.0\.1)", text)
    command = re.search(r"^CMD (\[.*\])$", text, flags=re.M)
    assert options_of(command[1]) <= known_options()
    for copied in re.findall(r"^COPY (?!--from)(.*) \S+$", text, flags=re.M):
        for name in copied.split():
            assert (DEPLOY.parent / name).exists(), name


def cluster() -> dict[str, dict[str, Any]]:
    """What is put into a cluster, by its kind; every kind is there once."""
    documents = list(yaml.safe_load_all(CLUSTER.read_text()))
    found = {document["kind"]: document for document in documents}
    assert len(found) == len(documents)
    return found


def test_the_pods_hold_bundles_alone_and_run_without_rights() -> None:
    pod = cluster()["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    user = re.search(r"^USER (\d+):(\d+)$", CONTAINER.read_text(), flags=re.M)
    assert pod["securityContext"]["runAsUser"] == int(user[1])
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    command = " ".join(container["args"])
    assert options_of(command) <= known_options()
    # A data folder has records and a secret.
    assert "--data" not in options_of(command)
    assert "--production" in options_of(command)
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert mounts["bundles"]["readOnly"] is True
    # An empty folder there would hide the compiled loops of the image.
    assert "/var/cache/lustrum" not in {mount["mountPath"] for mount in mounts.values()}
    assert f"--bundle={mounts['bundles']['mountPath']}/" in command
    assert {volume["name"] for volume in pod["volumes"]} == set(mounts)
    # The pod that fills the volume has no more rights, but may write.
    fill = cluster()["Pod"]["spec"]
    assert fill["securityContext"] == pod["securityContext"]
    assert fill["automountServiceAccountToken"] is False
    assert fill["containers"][0]["securityContext"] == container["securityContext"]
    assert fill["containers"][0]["image"] == container["image"]


def test_the_claim_binds_where_the_default_class_makes_folders_of_a_node() -> None:
    """That of k3s and kind, rancher.io/local-path: "Only support ReadWriteOnce access mode"."""
    found = cluster()
    claim = found["PersistentVolumeClaim"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert "storageClassName" not in claim["spec"]  # an empty one would mean none at all
    for pod in (found["Deployment"]["spec"]["template"]["spec"], found["Pod"]["spec"]):
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert volumes["bundles"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    # Three servers fit on a machine of two cores, and one may use all that is idle.
    spec = found["Deployment"]["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert container["resources"]["requests"]["cpu"] == "500m"
    assert spec["replicas"] * 0.5 < 2
    assert "cpu" not in container["resources"]["limits"]


def test_a_cluster_asks_the_server_whether_it_answers_and_lets_it_reach_nobody() -> None:
    found = cluster()
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    ready, alive = container["readinessProbe"]["httpGet"], container["livenessProbe"]["httpGet"]
    assert (ready["path"], alive["path"]) == ("/health/ready", "/health")
    assert container["startupProbe"]["httpGet"]["path"] == "/health/ready"
    assert found["NetworkPolicy"]["spec"]["egress"] == []
    asked = found["NetworkPolicy"]["spec"]["ingress"]
    assert [rule["ports"] for rule in asked] == [[{"port": "http"}], [{"port": "metrics"}]]
    selected = [rule["from"][0]["namespaceSelector"]["matchLabels"] for rule in asked]
    assert all(selected)
    assert selected[0] != selected[1]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert f"--metrics-port={ports['metrics']}" in container["args"]
    # Figures are for Prometheus alone: the service, and a proxy behind it, do not lead there.
    assert [port["targetPort"] for port in found["Service"]["spec"]["ports"]] == ["http"]
    assert set(found["NetworkPolicy"]["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert found[kind]["spec"]["selector"]["matchLabels"] == labels
    assert found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    # A job is known to one server, so a visitor stays with it.
    assert found["Service"]["spec"]["sessionAffinity"] == "ClientIP"
    port = container["ports"][0]["containerPort"]
    assert f"--port={port}" in container["args"]
    assert all(
        thing["metadata"].get("namespace") == found["Namespace"]["metadata"]["name"]
        for kind, thing in found.items()
        if kind != "Namespace"
    )
    least = found["PodDisruptionBudget"]["spec"]["minAvailable"]
    assert least < found["HorizontalPodAutoscaler"]["spec"]["minReplicas"]


KNOWN = {
    *("FROM", "RUN", "COPY", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"),
    "WORKDIR",
}


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a container file, lines that go on joined and comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\s*\n", " ", "\n".join(lines))
    return [
        (word.upper(), rest.strip())
        for word, _, rest in (line.strip().partition(" ") for line in joined.splitlines())
        if word
    ]


def test_the_container_file_is_well_formed() -> None:
    found = instructions(CONTAINER.read_text())
    assert found[0][0] == "FROM"
    assert {word for word, _ in found} <= KNOWN
    stages = [rest.split(" AS ")[1] for word, rest in found if word == "FROM" and " AS " in rest]
    for word, rest in found:
        assert rest, word
        if word in ("ENTRYPOINT", "CMD", "VOLUME"):
            assert all(isinstance(part, str) for part in json.loads(rest))
        if word == "HEALTHCHECK":
            checked = json.loads(rest.partition("CMD ")[2])
            compile(checked[2], "health", "exec")
        if word == "RUN":
            done = subprocess.run(["/bin/sh", "-n", "-c", rest], capture_output=True, check=False)
            assert done.returncode == 0, rest
        for stage in re.findall(r"--from=(\S+)", rest):
            assert stage in stages
    # All that comes after the user is set runs without rights, and nothing is installed there.
    last = [word for word, _ in found][::-1]
    assert "RUN" not in last[: last.index("USER")]
    assert "COPY" not in last[: last.index("USER")]


def test_a_malformed_container_file_would_be_found() -> None:
    assert instructions("FROM a \\\n AS b\n# no\nRUN x\n") == [("FROM", "a   AS b"), ("RUN", "x")]
