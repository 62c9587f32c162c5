//! The document has the promised fields.

use tilewright_ir::{AxisSeparators, Buffer, ScalarType, Var};
use tilewright_verify::{Counterexample, Method, Obligation, Proof, Verdict};

use super::*;
use crate::harness::stages::ChainOutcome;
use crate::pipeline::outcome::Setting;

/// A verdict that the judge gave: nobody else can make one that says *proved*.
fn judged() -> Verdict {
    let i = tilewright_ir::Var::index("i");
    let shape = [Expr::int(3)];
    let map = tilewright_ir::IndexMap::new(vec![i.clone()], shape.to_vec(), vec![Expr::from(&i)], vec![]).unwrap();
    let judge = tilewright_verify::Judge::new(tilewright_verify::Config::default(), tilewright_search::strategies());
    judge.unwrap().check_map(tilewright_verify::MapClaim::new(&map, &shape)).remove(0).verdict
}

/// An outcome in which everything is well; tests spoil it.
pub(crate) fn proved() -> FunctionOutcome {
    let report = Report {
        obligation: Obligation::Injective,
        subject: "B: lambda i, j: [j, i]".into(),
        verdict: judged(),
        method: Method::Z3,
        ms: 0.5,
        place: None,
        counterpart: None,
        proof: Proof::default(),
    };
    let step = StepOutcome {
        name: "apply_buffer_transforms".into(),
        ms: 1.5,
        reports: vec![report],
        premises: Vec::new(),
        blocked: None,
    };
    let n = Expr::from(&Var::index("n"));
    let logical = Buffer::compact("B", ScalarType::Float32, vec![Expr::int(3), n.clone()]);
    let separators = AxisSeparators::new(vec![1], 2).unwrap();
    let physical = logical.with(|info| {
        info.shape = vec![n, Expr::int(3)];
        info.axis_separators = separators;
    });
    let run = EngineOutcome {
        compared: 21,
        ms: 2.5,
        ..EngineOutcome::new(
            "opencl",
            Some("simplify"),
            Some("0: pthread (Portable Computing Language)".into()),
            Status::Agrees,
            String::new(),
        )
    };
    FunctionOutcome {
        name: "main".into(),
        steps: vec![step],
        buffers: vec![BufferOutcome { logical, flat: Some(physical.clone()), physical }],
        run: ChainOutcome { symbols: vec![("n".into(), 7)], engines: vec![run], ..ChainOutcome::default() },
        texture_limits: None,
    }
}

pub(crate) fn file(functions: Vec<FunctionOutcome>) -> CheckOutcome {
    let setting = Setting { solver: "Z3 5.4.0".into(), seed: 0, allow_unknown: false };
    CheckOutcome { functions, ..CheckOutcome::new(setting) }
}

/// The text that the outcomes are about.
pub(crate) fn source() -> Source {
    Source { name: "a.py".into(), text: String::new() }
}

#[test]
fn the_document_has_the_promised_fields() {
    let mut second = proved();
    second.name = "other".into();
    second.steps[0].reports[0].verdict = Verdict::Refuted(Counterexample {
        shape: vec![("n".into(), 2)],
        indices: vec![vec![0, 2], vec![1, 0]],
        assignments: Vec::new(),
        text: "(0, 2) and (1, 0) both land on (2)".into(),
    });
    let outcome = file(vec![proved(), second]);
    let line = FileReport { source: &source(), outcome: &outcome }.to_json();
    assert!(!line.contains('\n'));
    let json: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(json["schema"], "tilewright.check/1");
    assert_eq!((json["file"].as_str(), json["verdict"].as_str()), (Some("a.py"), Some("refuted")));
    assert_eq!(json["functions"][0]["verdict"], "proved");
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

#[test]
fn a_device_that_is_not_there_is_skipped_with_advice_and_one_not_asked_for_says_so() {
    let mut function = proved();
    function.run.engines[0].status = Status::Absent;
    function.run.engines[0].detail = "no OpenCL".into();
    function.run.engines.push(EngineOutcome::not_requested("opencl"));
    let outcome = file(vec![function]);
    let line = FileReport { source: &source(), outcome: &outcome }.to_json();
    let json: serde_json::Value = serde_json::from_str(&line).unwrap();
    let engine = |at: usize| (json["engines"][at]["status"].clone(), json["engines"][at]["reason"].clone());
    assert_eq!(engine(0), ("skipped".into(), "no OpenCL; run with --device none to do without".into()));
    assert_eq!(engine(1), ("not requested".into(), "--device none".into()));
}
