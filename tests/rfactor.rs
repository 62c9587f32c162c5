//! `rfactor`: a reduction in two stages is what its author wrote, and a wrong one is not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use tilewright::pipeline::{self, Program};
use tilewright_compiler::harness::engine::{StageProgram, Status};
use tilewright_compiler::harness::interpreter::Interpreter;
use tilewright_compiler::harness::stages::{self, Stage, run_chain};
use tilewright_compiler::lift;
use tilewright_ir::{Definition, Evidence, Expr, Matching, StageBody};
use tilewright_verify::{Config, Judge, Premise};

/// A program in TE that reduces the rows of a matrix; `shape` gives the extents, `ty` the type, `reduce` the operator.
fn source(shape: &str, ty: &str, reduce: &str, schedule: &str) -> String {
    format!(
        "n, m = {shape}\nA = te.placeholder((n, m), name='A', dtype='{ty}')\nk = te.reduce_axis((0, m), name='k')\n\
         C = te.compute((n,), lambda i: te.{reduce}(A[i, k], axis=k), name='C')\ns = te.create_schedule(C.op)\n\
         {schedule}\ntvm.lower(s, [A, C])\n"
    )
}

const FACTORED: &str = "ko, ki = s[C].split(s[C].op.reduce_axis[0], 4)\nR = s.rfactor(C, ki)\n\
                        s[R].reorder(s[R].op.axis[1], s[R].op.axis[0])\ns[C].reorder(s[C].op.reduce_axis[0], s[C].op.axis[0])";

fn judge() -> Judge {
    Judge::new(Config::default(), tilewright_search::strategies()).unwrap()
}

fn program(text: &str) -> Program {
    let mut read = pipeline::read(text, None).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    read.programs.remove(0)
}

#[test]
fn a_factored_reduction_is_proved() {
    let cases = [
        ("7, 19", "float32", "sum", true),
        ("te.var('n'), te.var('m')", "float32", "sum", true),
        ("te.var('n'), 22", "int32", "sum", false),
        ("te.var('n'), te.var('m')", "int32", "max", false),
        ("5, te.var('m')", "int32", "min", false),
    ];
    for (shape, ty, reduce, is_premise) in cases {
        let program = program(&source(shape, ty, reduce, FACTORED));
        assert_eq!(program.written.as_ref().unwrap().stages.len(), 1);
        assert_eq!(program.definition.as_ref().unwrap().0.stages.len(), 2);
        let lowering = pipeline::lower(&program, &judge(), false, &mut |_, _| {}).unwrap();
        let step = &lowering.steps[0];
        let open: Vec<String> = step
            .reports
            .iter()
            .filter(|report| !report.verdict.is_proved())
            .map(|report| format!("{} {}: {}", report.obligation, report.subject, report.verdict))
            .collect();
        assert_eq!(open, Vec::<String>::new(), "{shape} {ty} {reduce}");
        let has = step.premises.iter().any(|premise| matches!(premise, Premise::ReductionOrder(_)));
        assert_eq!(has, is_premise, "{shape} {ty} {reduce}: {:?}", step.premises);
    }
}

#[test]
fn the_factored_loop_may_be_any_axis_of_the_first_stage() {
    for (place, at) in [("0", 0), ("1", 1), ("-1", 1), ("-2", 0)] {
        let schedule =
            format!("ko, ki = s[C].split(s[C].op.reduce_axis[0], 4)\nR = s.rfactor(C, ki, factor_axis={place})");
        let program = program(&source("te.var('n'), te.var('m')", "int32", "sum", &schedule));
        let parts = &program.definition.as_ref().unwrap().0.stages[0].buffer;
        assert_eq!(parts.shape.iter().position(|extent| extent.as_const_int() == Some(4)), Some(at), "{place}");
        let lowering = pipeline::lower(&program, &judge(), false, &mut |_, _| {}).unwrap();
        let reports = &lowering.steps[0].reports;
        assert!(!reports.is_empty() && reports.iter().all(|report| report.verdict.is_proved()), "{place}");
    }
    for place in ["2", "-3"] {
        let schedule = format!("R = s.rfactor(C, s[C].op.reduce_axis[0], {place})");
        let faults = pipeline::read(&source("5, 19", "int32", "sum", &schedule), None).unwrap_err();
        assert!(faults[0].message.contains("there is no axis"), "{faults:?}");
    }
}

#[test]
fn the_second_of_two_axes_is_factored_after_a_split_into_parts() {
    for shape in ["te.var('n'), te.var('m'), te.var('p')", "5, 7, 19"] {
        for part in ["lo", "li"] {
            let text = format!(
                "n, m, p = {shape}\nA = te.placeholder((n, m, p), name='A', dtype='int32')\n\
                 k = te.reduce_axis((0, m), name='k')\nl = te.reduce_axis((0, p), name='l')\n\
                 C = te.compute((n,), lambda i: te.sum(A[i, k, l], axis=[k, l]), name='C')\n\
                 s = te.create_schedule(C.op)\nlo, li = s[C].split(s[C].op.reduce_axis[1], nparts=4)\n\
                 R = s.rfactor(C, {part})\ntvm.lower(s, [A, C])\n"
            );
            let lowering = pipeline::lower(&program(&text), &judge(), false, &mut |_, _| {}).unwrap();
            let reports = &lowering.steps[0].reports;
            assert!(!reports.is_empty() && reports.iter().all(|report| report.verdict.is_proved()), "{shape} {part}");
        }
    }
}

#[test]
fn a_factored_reduction_computes_what_was_written() {
    for schedule in [
        FACTORED,
        "R = s.rfactor(C, s[C].op.reduce_axis[0])",
        "R = s.rfactor(C, s[C].op.reduce_axis[0], -1)",
        "ko, ki = s[C].split(s[C].op.reduce_axis[0], 4)\nR = s.rfactor(C, ki, 1)",
    ] {
        let program = program(&source("5, 19", "float32", "sum", schedule));
        let stage = |name, program| Stage { name, program, evidence: None, reassociates: true };
        let stages = [
            stage("written", StageProgram::Definition(program.written.as_ref().unwrap())),
            stage("rewritten", StageProgram::Definition(&program.definition.as_ref().unwrap().0)),
            stage("lowered", StageProgram::Func(&program.func)),
        ];
        let ran = run_chain(&stages, &stages::Config::default(), &Interpreter::default(), &[]).unwrap();
        let statuses: Vec<Status> = ran.engines.iter().map(|engine| engine.status).collect();
        assert_eq!(statuses, [Status::Reference, Status::Agrees, Status::Agrees]);
    }
}

/// A change of the parts (the first stage) or of the whole (the second); false if there is no place for it.
type Change = fn(&mut Definition) -> bool;

const MISTAKES: [(&str, Change); 5] = [
    ("no guard of the ragged tile", |definition| {
        let StageBody::Reduce { source, .. } = &mut definition.stages[0].body else { return false };
        let Expr::IfThenElse(_, value, _) = &*source else { return false };
        *source = Expr::clone(value);
        true
    }),
    ("a part is left out", |definition| {
        let StageBody::Reduce { axes, .. } = &mut definition.stages[1].body else { return false };
        axes[0].extent = axes[0].extent.clone() - Expr::int(1);
        true
    }),
    ("an iteration of each part is left out", |definition| {
        let StageBody::Reduce { axes, .. } = &mut definition.stages[0].body else { return false };
        axes[0].extent = axes[0].extent.clone() - Expr::int(1);
        true
    }),
    ("the first part in the place of all", |definition| {
        let StageBody::Reduce { source: Expr::Load { buffer, indices }, .. } = &definition.stages[1].body else {
            return false;
        };
        let (buffer, mut index) = (buffer.clone(), indices.to_vec());
        index[0] = Expr::int(0);
        let StageBody::Reduce { source, .. } = &mut definition.stages[1].body else { return false };
        *source = Expr::load(&buffer, index);
        true
    }),
    ("another start", |definition| {
        let StageBody::Reduce { init, .. } = &mut definition.stages[1].body else { return false };
        *init = Some(Expr::int(1));
        true
    }),
];

#[test]
fn a_wrong_rewriting_is_not_proved() {
    let program = program(&source("te.var('n'), te.var('m')", "int32", "sum", FACTORED));
    let (written, right) = (program.written.as_ref().unwrap(), &program.definition.as_ref().unwrap().0);
    let outputs: Vec<_> = written.outputs().into_iter().map(|one| (one.clone(), one.clone())).collect();
    let (judge, evidence) = (judge(), Evidence::default());
    let claim = lift::matching_of(&program.func, [written, right], &evidence, &outputs).unwrap();
    let is_proved = |other: &Definition, matching: &Matching| {
        let reports = judge.check_definitions((&program.func, &program.func), [written, other], &evidence, matching);
        !reports.is_empty() && reports.iter().all(|report| report.verdict.is_proved())
    };
    assert!(is_proved(right, &claim));
    for (name, change) in MISTAKES {
        let mut wrong = right.clone();
        assert!(change(&mut wrong), "{name} has no place");
        assert!(!is_proved(&wrong, &claim), "{name} is proved");
        if let Ok(own) = lift::matching_of(&program.func, [written, &wrong], &evidence, &outputs) {
            assert!(!is_proved(&wrong, &own), "{name} is proved by its own claim");
        }
    }
}

#[test]
fn what_cannot_be_factored_is_refused() {
    let refused = |schedule: &str| {
        let faults = pipeline::read(&source("7, 19", "float32", "sum", schedule), None).unwrap_err();
        (faults[0].code, faults[0].message.clone())
    };
    for schedule in [
        "s.rfactor(C, s[C].op.axis[0])",
        "R = s.rfactor(C, s[C].op.reduce_axis[0])\ns.rfactor(C, s[C].op.reduce_axis[0])",
        "s[C].split(s[C].op.axis[0], 3)\ns.rfactor(C, s[C].op.reduce_axis[0])",
        "s.rfactor(C, s[C].op.reduce_axis[0], 2)",
    ] {
        assert_eq!(refused(schedule).0, "rfactor", "{schedule}: {:?}", refused(schedule));
    }
}
