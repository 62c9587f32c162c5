//! A report is as good as its worst part, and its document has the promised fields.

use super::*;

/// A report in which everything is well; tests spoil it.
pub(crate) fn proved() -> CheckReport {
    let obligation = ObligationRow {
        obligation: "injective".into(),
        subject: "B: lambda i, j: [j, i]".into(),
        verdict: Verdict::Proved,
        method: "z3".into(),
        ms: 0.5,
        counterexample: None,
        reason: None,
        proof: Proof::default(),
    };
    let pass =
        PassRow { name: "apply_buffer_transforms".into(), ms: 1.5, obligations: vec![obligation], skipped: None };
    let buffer = BufferRow {
        name: "B".into(),
        dtype: "float32".into(),
        logical_shape: vec![Dim::Known(3), Dim::Symbolic("n".into())],
        physical_shape: vec![Dim::Symbolic("n".into()), Dim::Known(3)],
        axis_separators: vec![1],
        flat_shape: Some(vec![Dim::Symbolic("n".into()), Dim::Known(3)]),
    };
    let engine = EngineRow {
        engine: "opencl".into(),
        stage: Some("simplify".into()),
        device: Some("0: pthread (Portable Computing Language)".into()),
        status: EngineStatus::Agrees,
        compared: 21,
        mismatches: 0,
        max_ulp: 0,
        ms: 2.5,
        reason: None,
    };
    CheckReport {
        function: "main".into(),
        passes: vec![pass],
        buffers: vec![buffer],
        shapes: vec![("n".into(), 7)],
        engines: vec![engine],
        blame: None,
        texture_limits: None,
        notes: Vec::new(),
    }
}

pub(crate) fn file(functions: Vec<CheckReport>) -> FileReport {
    let setting = Setting { solver: "Z3 5.4.0".into(), seed: 0, allow_unknown: false };
    FileReport { file: "a.py".into(), setting, warnings: Vec::new(), functions }
}

#[test]
fn all_well_is_proved_and_one_flaw_anywhere_is_not() {
    assert_eq!(file(vec![proved()]).verdict(), Verdict::Proved);
    for verdict in [Verdict::Skipped, Verdict::Vacuous, Verdict::Unknown, Verdict::Refuted] {
        let mut report = proved();
        report.passes[0].obligations[0].verdict = verdict;
        assert_eq!(file(vec![proved(), report]).verdict(), verdict);
    }
}

#[test]
fn nothing_checked_is_not_proved() {
    assert_eq!(file(vec![]).verdict(), Verdict::Skipped);
    let spoils: [fn(&mut CheckReport); 4] = [
        |report| report.passes.clear(),
        |report| report.passes[0].obligations.clear(),
        |report| report.engines.clear(),
        |report| report.passes[0].skipped = Some("the pass before it was refuted".into()),
    ];
    for spoil in spoils {
        let mut report = proved();
        spoil(&mut report);
        assert_eq!(report.verdict(), Verdict::Skipped);
    }
    let mut nothing_compared = proved();
    nothing_compared.engines[0].compared = 0;
    assert_eq!(nothing_compared.verdict(), Verdict::Vacuous);
}

#[test]
fn an_engine_that_was_not_asked_for_is_no_flaw_and_one_that_could_not_run_is() {
    let with_status = |status| {
        let mut report = proved();
        report.engines.push(EngineRow { status, ..report.engines[0].clone() });
        report.verdict()
    };
    assert_eq!(with_status(EngineStatus::NotRequested), Verdict::Proved);
    assert_eq!(with_status(EngineStatus::Skipped), Verdict::Skipped);
    assert_eq!(with_status(EngineStatus::Failed), Verdict::Unknown);
    assert_eq!(with_status(EngineStatus::Mismatch), Verdict::Mismatch);
    assert_eq!(with_status(EngineStatus::Trap), Verdict::Mismatch);
}

#[test]
fn the_document_has_the_promised_fields() {
    let mut second = proved();
    second.function = "other".into();
    second.passes[0].obligations[0].counterexample = Some(CounterexampleRow {
        shape: vec![("n".into(), 2)],
        indices: vec![vec![0, 2], vec![1, 0]],
        values: Vec::new(),
        text: "(0, 2) and (1, 0) both land on (2)".into(),
    });
    let line = file(vec![proved(), second]).to_json();
    assert!(!line.contains('\n'));
    let json: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(json["schema"], "tilewright.check/1");
    assert_eq!((json["file"].as_str(), json["verdict"].as_str()), (Some("a.py"), Some("proved")));
    let obligation = &json["passes"][1]["obligations"][0];
    for field in ["obligation", "subject", "verdict", "method", "ms", "counterexample"] {
        assert!(obligation.get(field).is_some(), "{field}");
    }
    assert_eq!(obligation["counterexample"]["shape"]["n"], 2);
    assert_eq!(obligation["counterexample"]["indices"], serde_json::json!([[0, 2], [1, 0]]));
    assert_eq!(json["passes"][0]["obligations"][0]["counterexample"], serde_json::Value::Null);
    assert_eq!(json["passes"][1]["function"], "other");
    for field in ["name", "logical_shape", "physical_shape", "axis_separators", "flat_shape"] {
        assert!(json["buffers"][0].get(field).is_some(), "{field}");
    }
    assert_eq!(json["buffers"][0]["logical_shape"], serde_json::json!([3, "n"]));
    for field in ["engine", "device", "status", "compared", "mismatches", "max_ulp", "ms"] {
        assert!(json["engines"][0].get(field).is_some(), "{field}");
    }
    assert_eq!(json["functions"][0]["shapes"]["n"], 7);
}
