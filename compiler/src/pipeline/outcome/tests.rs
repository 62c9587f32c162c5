//! An outcome is as good as its worst part.

use tilewright_verify::{Counterexample, Method, Obligation, Proof, Reason, ReasonKind};

use super::*;

/// A verdict that the judge gave: nobody else can make one that says *proved*.
fn judged() -> Verdict {
    let i = tilewright_ir::Var::index("i");
    let shape = [tilewright_ir::Expr::int(3)];
    let map =
        tilewright_ir::IndexMap::new(vec![i.clone()], shape.to_vec(), vec![tilewright_ir::Expr::from(&i)], vec![])
            .unwrap();
    let judge = tilewright_verify::Judge::new(tilewright_verify::Config::default(), tilewright_search::strategies());
    judge.unwrap().check_map(tilewright_verify::MapClaim::new(&map, &shape)).remove(0).verdict
}

/// An outcome in which everything is well; tests spoil it.
fn proved() -> FunctionOutcome {
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
    let step =
        StepOutcome { name: "simplify".into(), ms: 1.5, reports: vec![report], premises: Vec::new(), blocked: None };
    let run = EngineOutcome {
        compared: 21,
        ..EngineOutcome::new("opencl", Some("simplify"), Some("0: cpu".into()), Status::Agrees, String::new())
    };
    FunctionOutcome {
        name: "main".into(),
        steps: vec![step],
        buffers: Vec::new(),
        run: ChainOutcome { engines: vec![run], ..ChainOutcome::default() },
        texture_limits: None,
    }
}

fn file(functions: Vec<FunctionOutcome>) -> CheckOutcome {
    let setting = Setting { solver: "Z3 5.4.0".into(), seed: 0, allow_unknown: false };
    CheckOutcome { functions, ..CheckOutcome::new(setting) }
}

#[test]
fn one_flaw_anywhere_prevents_proved() {
    assert_eq!(file(vec![proved()]).summary(), Summary::Proved);
    for (verdict, summary) in [
        (Verdict::Skipped(Reason::new(ReasonKind::NotAsked, "not asked")), Summary::Skipped),
        (Verdict::Vacuous(Reason::new(ReasonKind::Empty, "empty")), Summary::Vacuous),
        (Verdict::Unknown(Reason::new(ReasonKind::Timeout, "timeout")), Summary::Unknown),
        (Verdict::Refuted(Counterexample::default()), Summary::Refuted),
    ] {
        let mut function = proved();
        function.steps[0].reports[0].verdict = verdict;
        assert_eq!(file(vec![proved(), function]).summary(), summary);
    }
}

#[test]
fn nothing_checked_is_not_proved() {
    assert_eq!(file(vec![]).summary(), Summary::Skipped);
    let spoils: [fn(&mut FunctionOutcome); 4] = [
        |function| function.steps.clear(),
        |function| function.steps[0].reports.clear(),
        |function| function.run.engines.clear(),
        |function| function.steps[0].blocked = Some(Blocked { by: "input".into(), summary: Summary::Refuted }),
    ];
    for spoil in spoils {
        let mut function = proved();
        spoil(&mut function);
        assert_eq!(function.summary(), Summary::Skipped);
    }
    let mut nothing_compared = proved();
    nothing_compared.run.engines[0].compared = 0;
    assert_eq!(nothing_compared.summary(), Summary::Vacuous);
}

#[test]
fn an_engine_that_was_not_asked_for_is_no_flaw_and_one_that_could_not_run_is() {
    let with_status = |status| {
        let mut function = proved();
        let run = EngineOutcome { status, ..function.run.engines[0].clone() };
        function.run.engines.push(run);
        function.summary()
    };
    assert_eq!(with_status(Status::NotRequested), Summary::Proved);
    assert_eq!(with_status(Status::Skipped), Summary::Skipped);
    assert_eq!(with_status(Status::Absent), Summary::Skipped);
    assert_eq!(with_status(Status::Failed), Summary::Unknown);
    assert_eq!(with_status(Status::Mismatch), Summary::Mismatch);
    assert_eq!(with_status(Status::Trap), Summary::Mismatch);
}

#[test]
fn what_stopped_a_step_is_named() {
    let blocked = Blocked { by: "flatten_buffer".into(), summary: Summary::Refuted };
    assert_eq!(blocked.to_string(), "not run, for flatten_buffer is refuted");
}
