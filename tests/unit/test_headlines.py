"""Headlines of findings: at most 100 characters."""

from msgspec.structs import replace
from rehearsed import FINDING

from seatrial.phrases.headline import HEADLINE_MAX, fit, fitted

CLAIM = "PersistentVolumeClaim/"
LONG = "-of-the-northern-region"


def test_a_headline_that_fits_stays_as_it_is() -> None:
    said = "helm upgrade deletes PersistentVolumeClaim/shop/data"
    assert fit(said) == said


def test_kinds_then_namespaces_then_names_give_way() -> None:
    claims = "PersistentVolumeClaim/storefront/data and PersistentVolumeClaim/storefront/logs"
    assert fit(f"helm rollback deletes {claims}") == f"helm rollback deletes {claims.replace(CLAIM, 'PVC ')}"
    jobs = "Job/storefront/migrate and Job/storefront/seed and Job/storefront/verify"
    assert fit(f"helm upgrade runs {jobs} before Service/storefront/shop exists") == (
        "helm upgrade runs Job/migrate and Job/seed and Job/verify before Service/shop exists"
    )
    assert fit(f"helm upgrade runs Job/shop/migrate{LONG} before Deployment/shop/database{LONG} is ready at all") == (
        "helm upgrade runs Job/migrate-...n-region before Deployment/database...n-region is ready at all"
    )


def test_an_api_version_keeps_its_group() -> None:
    said = "which Kubernetes policy/v1beta1 does not have " + "any more " * 8
    assert fit(said) == said


def test_what_does_not_fit_is_the_first_detail() -> None:
    said = "helm upgrade fails " + "and fails again " * 8 + "at the end"
    finding = fitted(replace(FINDING, message=said))
    assert finding.message.endswith(" ...")
    assert len(finding.message) <= HEADLINE_MAX
    assert finding.details == (f"{said}.", *FINDING.details)


def test_names_stay_whole_where_cutting_them_would_not_help() -> None:
    waits = "a pod of Deployment/{0}jobs waits for {1}jobs, which the old pod holds"
    said = waits.format("shop/", f"{CLAIM}shop/") + " on" * 20
    finding = fitted(replace(FINDING, message=said))
    assert finding.message.startswith(waits.format("", "PVC "))
    assert finding.details[0] == f"{said}."
