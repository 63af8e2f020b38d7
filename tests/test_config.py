"""Settings: parsed once, strictly, and never giving a secret away."""

import copy
import dataclasses
import ipaddress
import json
import pickle
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from coatcheck.config import Secret, Settings, Wake, load_settings, page
from coatcheck.config.table import CONCURRENCY, LEASE, PROVIDER, TOP
from coatcheck.core.operation import RenderState
from coatcheck.errors import SettingInvalid, SettingUnknown

GENACE = "COATCHECK_PROVIDERS__GENACE__"
SECRET = "s3cret-key"


def settings(folder: Path, **variables: str) -> Settings:
    return load_settings({"HOME": "/people/ada", **variables}, folder)


def test_defaults_are_those_of_the_contract(tmp_path: Path) -> None:
    found = settings(tmp_path, **{f"{GENACE}BASE_URL": "https://api.example.com/v2/", f"{GENACE}API_KEY": SECRET})
    assert found.database_url is None
    assert found.home == Path("/people/ada/.local/share/coatcheck")
    assert found.sink == "file:///people/ada/.local/share/coatcheck/outputs"
    assert found.sink_path == Path("/people/ada/.local/share/coatcheck/outputs")
    assert (found.wake, found.deliver_tries, found.output_max_bytes) == (Wake.NOTIFY, 8, 2 * 1024**3)
    assert (found.lease.dispatch_s, found.lease.observe_s, found.lease.deliver_s) == (None, None, None)
    assert (found.concurrency.dispatch, found.concurrency.observe, found.concurrency.deliver) == (32, 1000, 32)
    genace = found.providers["genace"]
    assert genace.endpoint().base_url == "https://api.example.com/v2"
    assert genace.endpoint().api_key.reveal() == SECRET
    rest = {each.name: getattr(genace, each.name) for each in dataclasses.fields(genace)}
    assert rest == {
        "name": "genace",
        "kind": "genace",
        "list_path": "",
        "cancel_path": "",
        "cancel_method": "POST",
        "account": "genace",
        "base_url": "https://api.example.com/v2",
        "api_key": Secret(SECRET),
        "create_path": "/api/v1/jobs",
        "job_path": "/api/v1/jobs/{id}",
        "wait_param": "wait",
        "wait_s": 30.0,
        "timeout_s": 60.0,
        "send_s": 5.0,
        "service_lag_s": 10.0,
        "margin_s": 2.0,
        "observe_timeout_s": 40.0,
        "look_min_s": 2.0,
        "not_found_grace_s": 60.0,
        "observe_for_s": 86400.0,
        "throttled_cap_s": 300.0,
        "closed_statuses": frozenset({202, 204, 304, 408}),
        "status_words": {},
        "throttled_is_uncertain": False,
    }


def test_nothing_given_is_enough_to_enqueue_and_read(tmp_path: Path) -> None:
    assert settings(tmp_path).providers == {}


def test_the_home_follows_the_data_folder_of_the_desktop(tmp_path: Path) -> None:
    assert settings(tmp_path, XDG_DATA_HOME="/data").home == Path("/data/coatcheck")
    assert settings(tmp_path, XDG_DATA_HOME="relative").home == Path("/people/ada/.local/share/coatcheck")
    assert settings(tmp_path, COATCHECK_HOME="~/coats").home == Path("/people/ada/coats")
    assert settings(tmp_path, COATCHECK_HOME="coats").home == tmp_path / "coats"


def test_the_environment_beats_the_file(tmp_path: Path) -> None:
    (tmp_path / "coatcheck.toml").write_text(
        """
        wake = "poll"
        sink = "file:///srv/coats"
        output_hosts = ["10.0.0.0/8"]
        [lease]
        deliver_s = 60
        [concurrency]
        observe = 50
        [providers.genace]
        base_url = "http://[::1]:8080"
        wait_s = 20.5
        closed_statuses = [204]
        status_words = { Dreaming = "rendering" }
        throttled_is_uncertain = true
        [providers.my_other2]
        base_url = "https://other.example.com"
        """
    )
    found = settings(tmp_path, COATCHECK_WAKE="notify", **{f"{GENACE}WAIT_S": "1", f"{GENACE}WAIT_PARAM": ""})
    assert (found.wake, found.sink) == (Wake.NOTIFY, "file:///srv/coats")
    assert (found.lease.deliver_s, found.concurrency.observe, found.concurrency.deliver) == (60.0, 50, 32)
    assert found.output_hosts.networks == (ipaddress.IPv4Network("10.0.0.0/8"),)
    assert list(found.providers) == ["genace", "my_other2"]
    genace = found.providers["genace"]
    assert (genace.base_url, genace.wait_s, genace.observe_timeout_s, genace.wait_param) == (
        "http://[::1]:8080",
        1.0,
        11.0,
        "",
    )
    assert (genace.closed_statuses, genace.throttled_is_uncertain) == (frozenset({204}), True)
    assert genace.status_words == {"dreaming": RenderState.RENDERING}


def test_lists_and_maps_fit_into_one_variable(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        COATCHECK_OUTPUT_HOSTS="192.168.7.0/24, http://Cache.local:9000, https://cdn.example.com:8443, fd00::/8",
        COATCHECK_SINK="file:///srv/my%20coats/",
        **{
            f"{GENACE}CLOSED_STATUSES": "202,204",
            f"{GENACE}STATUS_WORDS": '{"Dreaming": "rendering", "gone": "expired"}',
            f"{GENACE}THROTTLED_IS_UNCERTAIN": "Yes",
        },
    )
    assert found.output_hosts.networks == (ipaddress.ip_network("192.168.7.0/24"), ipaddress.ip_network("fd00::/8"))
    assert found.output_hosts.http_hosts == {"cache.local"}
    assert found.output_hosts.ports == {9000, 8443}
    assert found.sink_path == Path("/srv/my coats")
    assert found.providers["genace"].closed_statuses == {202, 204}
    assert found.providers["genace"].status_words == {"dreaming": RenderState.RENDERING, "gone": RenderState.EXPIRED}


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("COATCHECK_DATABASE_ULR", "COATCHECK_DATABASE_URL"),
        ("COATCHECK_Sink", "COATCHECK_SINK"),
        ("COATCHECK_LEASE__DISPATCH", "COATCHECK_LEASE__DISPATCH_S"),
        ("COATCHECK_LEASE_OBSERVE_S", "COATCHECK_LEASE__OBSERVE_S"),
        (f"{GENACE}APIKEY", f"{GENACE}API_KEY"),
        ("COATCHECK_PROVIDERS__ALPHA__BASE_URI", "COATCHECK_PROVIDERS__ALPHA__BASE_URL"),
        ("COATCHECK_PROVIDERS__GENACE", "COATCHECK_"),
        ("COATCHECK_PROVIDER__RUBY__API_KEY", "COATCHECK_PROVIDERS__RUBY__API_KEY"),
        ("COATCHECK_PROVIDERS_RUBY_BASE_URL", "COATCHECK_PROVIDERS__RUBY__BASE_URL"),
        ("COATCHECK_PROVIDERS__A__B__BASE_URL", "COATCHECK_PROVIDERS__A__BASE_URL"),
        ("COATCHECK_CONFIGS", "COATCHECK_CONFIG"),
        ("COATCHECK_", "COATCHECK_"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_name(tmp_path: Path, variable: str, nearest: str) -> None:
    with pytest.raises(SettingUnknown, match="in the environment") as refused:
        settings(tmp_path, **{variable: SECRET})
    assert variable in refused.value.message
    assert nearest in refused.value.next
    assert SECRET not in str(refused.value) + refused.value.next


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("wakes = 'poll'", "wake;"),
        ("WAKE = 'poll'", "known name"),
        ("config = 'other.toml'", "known name"),
        ("[leases]\ndispatch_s = 1", "known name"),
        ("[lease]\ndispatch = 1", "lease.dispatch_s;"),
        ("[providers.genace]\napi_kee = 's3cret-key'", "providers.genace.api_key;"),
    ],
)
def test_an_unknown_key_of_the_file_is_refused_with_the_nearest_name(tmp_path: Path, text: str, nearest: str) -> None:
    (tmp_path / "coatcheck.toml").write_text(text)
    with pytest.raises(SettingUnknown, match=r"in coatcheck\.toml") as refused:
        settings(tmp_path)
    assert nearest in refused.value.next
    assert SECRET not in str(refused.value)


def test_the_configured_file_must_exist_and_be_toml(tmp_path: Path) -> None:
    with pytest.raises(SettingInvalid, match="expected a file that can be read"):
        settings(tmp_path, COATCHECK_CONFIG="missing.toml")
    (tmp_path / "broken.toml").write_text(f'[providers.genace]\napi_key = "{SECRET}\n')
    with pytest.raises(SettingInvalid, match=r"expected TOML in broken\.toml.*line 2") as refused:
        settings(tmp_path, COATCHECK_CONFIG="broken.toml")
    assert SECRET not in "".join(traceback.format_exception(refused.value))
    (tmp_path / "latin.toml").write_bytes(b'sink = "file:///\xe9"')
    with pytest.raises(SettingInvalid, match=r"expected UTF-8 in latin\.toml"):
        settings(tmp_path, COATCHECK_CONFIG="latin.toml")
    (tmp_path / "flat.toml").write_text("providers = 3")
    with pytest.raises(SettingInvalid, match="providers: expected a table"):
        settings(tmp_path, COATCHECK_CONFIG="flat.toml")


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        (
            "COATCHECK_DATABASE_URL",
            "mysql://u:s3cret-key@h/d",
            "expected postgresql://user@host/database, got something else",
        ),
        ("COATCHECK_DATABASE_URL", "", "expected postgresql://"),
        ("COATCHECK_DATABASE_URL", "host=h password=s3cret-key", "expected postgresql://"),
        ("COATCHECK_HOME", "", "expected a folder, got nothing"),
        ("COATCHECK_SINK", "/srv/coats", "expected file:///"),
        ("COATCHECK_SINK", "file://host/coats", "expected file:///"),
        ("COATCHECK_SINK", "file:///", "expected file:///"),
        ("COATCHECK_SINK", "s3://bucket", "got 's3://bucket'"),
        ("COATCHECK_WAKE", "often", "expected notify or poll, got 'often'"),
        ("COATCHECK_DELIVER_TRIES", "0", "from 1 to 1000"),
        ("COATCHECK_DELIVER_TRIES", "1.5", "from 1 to 1000"),
        ("COATCHECK_OUTPUT_MAX_BYTES", "-1", "a whole number"),
        ("COATCHECK_OUTPUT_HOSTS", "cache.local", "expected networks"),
        ("COATCHECK_OUTPUT_HOSTS", "10.0.0.1/8", "expected networks"),
        ("COATCHECK_OUTPUT_HOSTS", "http://cache.local/path", "expected networks"),
        ("COATCHECK_LEASE__DISPATCH_S", "0", "seconds, a number above 0"),
        ("COATCHECK_LEASE__DISPATCH_S", "inf", "seconds"),
        ("COATCHECK_LEASE__OBSERVE_S", "nan", "seconds"),
        ("COATCHECK_LEASE__OBSERVE_S", "1e3", "seconds"),
        ("COATCHECK_CONCURRENCY__OBSERVE", "many", "got 'many'"),
        (f"{GENACE}KIND", "dalle", "expected genace or echo, got 'dalle'"),
        (f"{GENACE}ACCOUNT", "", "expected a name"),
        (f"{GENACE}ACCOUNT", "a\nb", "expected a name"),
        (f"{GENACE}BASE_URL", "api.example.com", "expected http://host"),
        (f"{GENACE}BASE_URL", "ftp://api.example.com", "expected http://host"),
        (f"{GENACE}BASE_URL", "https://", "expected http://host"),
        (f"{GENACE}BASE_URL", "https://ada:s3cret-key@api.example.com", "without user"),
        (f"{GENACE}BASE_URL", "https://api.example.com?x=1", "without user, query"),
        (f"{GENACE}BASE_URL", "https://api.example.com/#x", "fragment"),
        (f"{GENACE}BASE_URL", "https://api.example.com:99999", "expected http://host"),
        (f"{GENACE}BASE_URL", "https://api.exa mple.com", "expected http://host"),
        (f"{GENACE}BASE_URL", "https://api.example.com\n", "expected http://host"),
        (f"{GENACE}API_KEY", "", "got nothing"),
        (f"{GENACE}API_KEY", "s3cret-key ", "got something else (not shown)"),
        (f"{GENACE}API_KEY", "s3cret-key\n", "without spaces"),
        (f"{GENACE}API_KEY", "s3cret-key\u00e9", "printable ASCII"),
        (f"{GENACE}CREATE_PATH", "api/v1/jobs", "begins with /"),
        (f"{GENACE}CREATE_PATH", "/jobs#x", "begins with /"),
        (f"{GENACE}JOB_PATH", "/jobs", "{id} exactly once"),
        (f"{GENACE}JOB_PATH", "/jobs/{id}/{id}", "{id} exactly once"),
        (f"{GENACE}JOB_PATH", "jobs/{id}", "{id} exactly once"),
        (f"{GENACE}JOB_PATH", "/jobs/{id}/{key}", "{id} exactly once"),
        (f"{GENACE}WAIT_PARAM", "a=b", "query parameter"),
        (f"{GENACE}TIMEOUT_S", "0", "seconds"),
        (f"{GENACE}SEND_S", "-1", "seconds"),
        (f"{GENACE}OBSERVE_TIMEOUT_S", "30", "expected at least WAIT_S + 0.5 (30.5), got 30"),
        (f"{GENACE}CLOSED_STATUSES", "204,200", "without 200"),
        (f"{GENACE}CLOSED_STATUSES", "204,99", "HTTP statuses"),
        (f"{GENACE}STATUS_WORDS", "dreaming=rendering", "expected JSON"),
        (f"{GENACE}STATUS_WORDS", '{"dreaming": "asleep"}', "expected JSON"),
        (f"{GENACE}STATUS_WORDS", '{"gone": "missing"}', "expected JSON"),
        (f"{GENACE}STATUS_WORDS", "[" * 50_000, "expected JSON"),
        (f"{GENACE}THROTTLED_IS_UNCERTAIN", "perhaps", "expected true or false"),
        ("COATCHECK_PROVIDERS__9LIVES__KIND", "genace", "expected a provider named by"),
        (f"COATCHECK_PROVIDERS__{'X' * 64}__KIND", "genace", "expected a provider named by"),
        ("COATCHECK_PROVIDERS__A-B__KIND", "genace", "expected a provider named by"),
    ],
)
def test_an_impossible_value_is_refused_with_the_reason(tmp_path: Path, variable: str, value: str, said: str) -> None:
    with pytest.raises(SettingInvalid) as refused:
        settings(tmp_path, **{variable: value})
    assert refused.value.message.startswith(f"{variable}: expected")
    assert said in refused.value.message
    assert refused.value.next
    shown = "".join(traceback.format_exception(refused.value)) + refused.value.next
    assert SECRET not in shown
    assert len(shown) < 5000


@pytest.mark.parametrize(
    "text",
    [
        "wake = true",
        "deliver_tries = true",
        "deliver_tries = 2.5",
        "[lease]\ndispatch_s = inf",
        "[lease]\ndispatch_s = nan",
        "[lease]\ndispatch_s = [1]",
        "[lease.dispatch_s]\nx = 1",
        "[providers.genace]\nthrottled_is_uncertain = 1",
        "[providers.genace]\nstatus_words = ['a']",
        "[providers.genace]\nclosed_statuses = 204",
        "[providers.genace]\napi_key = 7",
        "[providers.GENACE]\nwait_s = 7",
        "[providers.'a__b']\nwait_s = 7",
    ],
)
def test_a_value_of_the_wrong_type_in_the_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "coatcheck.toml").write_text(text)
    with pytest.raises(SettingInvalid, match=r"in coatcheck\.toml: expected"):
        settings(tmp_path)


def test_two_services_cannot_share_an_account(tmp_path: Path) -> None:
    shared = {"COATCHECK_PROVIDERS__A__BASE_URL": "https://a.example.com", "COATCHECK_PROVIDERS__B__ACCOUNT": "a"}
    with pytest.raises(SettingInvalid, match="COATCHECK_PROVIDERS__B__ACCOUNT: expected a name of its own"):
        settings(tmp_path, **shared, COATCHECK_PROVIDERS__B__BASE_URL="https://b.example.com")
    settings(tmp_path, **shared, COATCHECK_PROVIDERS__B__BASE_URL="https://a.example.com")


def test_a_service_that_cannot_wait_has_no_window_to_outlast(tmp_path: Path) -> None:
    found = settings(tmp_path, **{f"{GENACE}WAIT_PARAM": "", f"{GENACE}OBSERVE_TIMEOUT_S": "5"})
    assert found.providers["genace"].observe_timeout_s == 5


@pytest.mark.parametrize(("given", "missing"), [("API_KEY", "BASE_URL"), ("BASE_URL", "API_KEY")])
def test_workers_need_address_and_key(tmp_path: Path, given: str, missing: str) -> None:
    value = {"API_KEY": SECRET, "BASE_URL": "https://api.example.com"}[given]
    provider = settings(tmp_path, **{f"{GENACE}{given}": value}).providers["genace"]
    with pytest.raises(SettingInvalid, match=f"{GENACE}{missing}: expected"):
        provider.endpoint()


def test_a_secret_never_shows(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        COATCHECK_DATABASE_URL=f"postgresql://ada:{SECRET}@db/coats",
        **{f"{GENACE}API_KEY": SECRET, f"{GENACE}BASE_URL": "https://api.example.com"},
    )
    key = found.providers["genace"].endpoint().api_key
    shown = [
        repr(found),
        str(found),
        repr(key),
        str(key),
        f"{key}",
        f"{key!r:>40}",
        repr(vars(type(key))),
        repr(copy.deepcopy(key)),
    ]
    shown.append(repr(dataclasses.asdict(found.providers["genace"].endpoint())))
    assert not [each for each in shown if SECRET in each]
    for dump in (pickle.dumps, json.dumps, copy_through_pickle):
        with pytest.raises(TypeError) as refused:
            dump(key)
        assert SECRET not in str(refused.value)
    assert key == Secret(SECRET) != Secret("other")
    assert hash(key) == hash(Secret(SECRET))
    assert copy.copy(key).reveal() == SECRET


def copy_through_pickle(value: object) -> object:
    return pickle.loads(pickle.dumps(value, protocol=2))


def test_settings_cannot_change(tmp_path: Path) -> None:
    found: Any = settings(tmp_path, **{f"{GENACE}WAIT_S": "1"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.wake = Wake.POLL
    with pytest.raises(TypeError):
        found.providers["other"] = found.providers["genace"]


def test_the_page_of_settings_is_the_table() -> None:
    written = (Path(__file__).parent.parent / "docs" / "settings.md").read_text()
    assert written == page.settings_page(), "run `python -m coatcheck.config.page > docs/settings.md`"


def test_every_setting_has_one_name_and_one_field() -> None:
    for table, owner in ((TOP, Settings), (PROVIDER, None), (LEASE, None), (CONCURRENCY, None)):
        names = [each.name for each in table]
        assert len(set(names)) == len(names)
        if owner is not None:
            fields = {each.name for each in dataclasses.fields(owner)}
            assert set(names) == fields - {"lease", "concurrency", "providers"}


def test_reading_settings_loads_no_library() -> None:
    script = (
        "import sys; known = set(sys.modules); from coatcheck.config import load_settings; load_settings({'HOME': '/'});"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - known} - sys.stdlib_module_names - {'coatcheck'}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == []


def test_the_remedy_for_a_wrong_value_is_one_that_helps(tmp_path: Path) -> None:
    """A key has no default to fall back on, and other ways to write the database's address are told how it is written here."""

    def remedy(variable: str, value: str) -> str:
        with pytest.raises(SettingInvalid) as refused:
            settings(tmp_path, **{variable: value})
        assert "s3cret" not in refused.value.next
        return refused.value.next

    assert "default" not in remedy(f"{GENACE}API_KEY", "")
    assert "or remove it for the default" in remedy("COATCHECK_WAKE", "often")
    assert "instead of keywords" in remedy("COATCHECK_DATABASE_URL", "host=h password=s3cret-key")
    assert "without the driver" in remedy("COATCHECK_DATABASE_URL", "postgresql+psycopg://u:s3cret-key@h/d")
