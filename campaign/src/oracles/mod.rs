//! The list of all oracles, one per file.
//!
//! To add an oracle: a file here, an entry in [`ORACLES`], a target in `fuzz/fuzz_targets` with its
//! name (also in `fuzz/Cargo.toml` and `scripts/fuzz.sh`), and a row in `docs/guide/fuzz.md`. Tests
//! check that the lists agree.
//!
//! | oracle | compares | with |
//! |---|---|---|
//! | `passes` | a program after each pass, in the interpreter | the program before it |
//! | `order` | runs on threads and in other iteration orders | a run on one thread |
//! | `interpreter` | the fast interpreter | the reference interpreter |
//! | `padding` | runs with arbitrary bytes in the padding | the program without padding |
//! | `judge_maps` | verdicts on index maps | evaluation at every point |
//! | `device` | kernels on OpenCL devices | the interpreter |
//! | `planner` | memory plans and verdicts on them | a simulation with guard bands and poison |
//! | `roundtrip` | a printed text, read back | the printed value |
//! | `read_script`, `read_layout`, `read_graph` | readers on nearly right texts | the rules of diagnostics |
//! | `judge_programs` | verdicts on passes, right and with a mistake | runs in the interpreter |
//! | `judge_pairs` | verdicts on pairs of programs | runs of both, with integers of any sign |
//! | `judge_layouts` | verdicts on tiled layouts | pad, reshape, transpose on labels |
//! | `certificate` | certificates and their mutants | evaluation at every point |
//! | `inverse` | a map or a relayout, followed by its inverse | the identity |
//! | `arithmetic` | the interpreter's operators | arithmetic of the oracle's own |
//! | `encoder` | the judge's queries, read by an evaluator of SMT-LIB | evaluation at points |
//! | `schedules` | TE programs with random schedules, lowered | the definition, and the judge's verdicts |
//! | `blocks` | verdicts on what blocks of S-TIR say, and runs of them | every iteration |
//! | `block_schedules` | steps of schedules on blocks, judged | runs before and after each step |
//! | `interleavings` | the race check and runs on threads | all orders of the accesses of tiny programs |
//! | `steps` | verdicts on steps that read their results, leave elements unwritten or work in place | the accesses of tiny programs |
//! | `second_judge` | the judge | a judge without a memo and without points |
//! | `recheck` | certificates of random claims | Z3 on their texts |
//! | `claims` | claims about pairs written by hand, and about changes of them | runs in the interpreter |
//! | `derivations` | facts that the proof kernel derives | evaluation at all points of a box |
//! | `written_passes` | programs written by hand and changes of them, after their passes | the program before, in the interpreter |
//! | `lifting` | definitions that programs are proved to compute, and pairs of them | runs in the interpreter |
//!
//! Each oracle has tests in which a broken component is substituted, to show that it can fail at all.

pub mod arithmetic;
pub mod block_schedules;
pub mod blocks;
pub mod certificate;
pub mod claims;
pub mod derivations;
pub mod device;
pub mod encoder;
pub mod interleavings;
pub mod interpreter;
pub mod inverse;
pub mod judge_layouts;
pub mod judge_maps;
pub mod judge_pairs;
pub mod judge_programs;
pub mod lifting;
pub mod order;
pub mod padding;
pub mod passes;
pub mod planner;
pub mod read;
pub mod recheck;
pub mod roundtrip;
pub mod schedules;
pub mod second_judge;
mod self_test;
pub mod steps;
pub mod written_passes;

#[cfg(test)]
mod program_tests;

use super::oracle::{Environment, Oracle};
use super::session::{Runner, Session};

/// An entry of the list.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name, [`Oracle::NAME`].
    pub name: &'static str,
    /// One line that says what is compared with what.
    pub summary: &'static str,
    /// Creates the oracle and its runner. The error says in a sentence why it is not available
    /// here.
    pub make: fn(&Environment) -> Result<Box<dyn Runner>, String>,
}

/// All oracles, in the order of docs/guide/fuzz.md.
pub static ORACLES: &[Entry] = &[
    Entry {
        name: passes::Passes::NAME,
        summary: "a program in the interpreter, before and after every pass",
        make: |environment| session(passes::Passes::new, environment),
    },
    Entry {
        name: order::Order::NAME,
        summary: "a program on one thread, on several, and with its iterations in other orders",
        make: |environment| session(order::Order::new, environment),
    },
    Entry {
        name: interpreter::Interpreter::NAME,
        summary: "the fast interpreter against the reference interpreter, traps included",
        make: |environment| session(interpreter::Interpreter::new, environment),
    },
    Entry {
        name: padding::Padding::NAME,
        summary: "a program after every pass with other values in the padding of its arguments",
        make: |environment| session(padding::Padding::new, environment),
    },
    Entry {
        name: judge_maps::JudgeMaps::NAME,
        summary: "the judge's verdicts on index maps against every point tried",
        make: |environment| session(judge_maps::JudgeMaps::new, environment),
    },
    Entry {
        name: device::Devices::NAME,
        summary: "the kernels of a program on every device present against the interpreter",
        make: |environment| session(device::Devices::new, environment),
    },
    Entry {
        name: planner::Planner::NAME,
        summary: "memory plans in simulated memory with guard bands and poison, and against the judge",
        make: |environment| session(planner::Planner::new, environment),
    },
    Entry {
        name: roundtrip::RoundTrip::NAME,
        summary: "print, then read: programs, maps, XLA's shapes, graphs and plans",
        make: |environment| session(roundtrip::RoundTrip::new, environment),
    },
    Entry {
        name: read::ReadScript::NAME,
        summary: "the readers of TVMScript and TE on texts that are right, nearly right and wrong",
        make: |environment| session(read::ReadScript::new, environment),
    },
    Entry {
        name: read::ReadLayout::NAME,
        summary: "the readers of layouts, maps, shapes and formats on such texts",
        make: |environment| session(read::ReadLayout::new, environment),
    },
    Entry {
        name: read::ReadGraph::NAME,
        summary: "the readers of graphs, plans and findings on such texts",
        make: |environment| session(read::ReadGraph::new, environment),
    },
    Entry {
        name: judge_programs::JudgePrograms::NAME,
        summary: "the judge's verdicts on passes, and on passes with a mistake, against runs",
        make: |environment| session(judge_programs::JudgePrograms::new, environment),
    },
    Entry {
        name: judge_pairs::JudgePairs::NAME,
        summary: "the judge's verdicts on pairs of programs against runs of both, with integers of any sign",
        make: |environment| session(judge_pairs::JudgePairs::new, environment),
    },
    Entry {
        name: judge_layouts::JudgeLayouts::NAME,
        summary: "the judge's verdicts on tiled layouts against pad, reshape, transpose",
        make: |environment| session(judge_layouts::JudgeLayouts::new, environment),
    },
    Entry {
        name: certificate::Certificate::NAME,
        summary: "digit certificates are accepted, and every mutation of them is rejected",
        make: |environment| session(certificate::Certificate::new, environment),
    },
    Entry {
        name: inverse::Inverse::NAME,
        summary: "maps, tensors and layouts there and back",
        make: |environment| session(inverse::Inverse::new, environment),
    },
    Entry {
        name: arithmetic::Arithmetic::NAME,
        summary: "the interpreter's operators against arithmetic of the oracle's own",
        make: |environment| session(arithmetic::Arithmetic::new, environment),
    },
    Entry {
        name: encoder::Encoder::NAME,
        summary: "the judge's queries in SMT-LIB, read by an evaluator of the oracle's own, against evaluation",
        make: |environment| session(encoder::Encoder::new, environment),
    },
    Entry {
        name: schedules::Schedules::NAME,
        summary: "TE programs with random schedules, lowered, judged and run, against their definition",
        make: |environment| session(schedules::Schedules::new, environment),
    },
    Entry {
        name: blocks::Blocks::NAME,
        summary: "what blocks of S-TIR say of themselves, judged, and what they do, against every iteration",
        make: |environment| session(blocks::Blocks::new, environment),
    },
    Entry {
        name: block_schedules::BlockSchedules::NAME,
        summary: "steps of random schedules on blocks, judged, and runs of the programs before and after them",
        make: |environment| session(block_schedules::BlockSchedules::new, environment),
    },
    Entry {
        name: interleavings::Interleavings::NAME,
        summary: "the race check, the judge's verdicts on races, both interpreters and runs on threads against all orders of tiny programs, with barriers",
        make: |environment| session(interleavings::Interleavings::new, environment),
    },
    Entry {
        name: steps::Steps::NAME,
        summary: "what the judge says of steps that read their results, leave elements unwritten or work in place, against the accesses of tiny programs",
        make: |environment| session(steps::Steps::new, environment),
    },
    Entry {
        name: second_judge::SecondJudge::NAME,
        summary: "the judge against one without a memo that may not enumerate points",
        make: |environment| session(second_judge::SecondJudge::new, environment),
    },
    Entry {
        name: recheck::Recheck::NAME,
        summary: "certificates of random claims, given to Z3 again as text",
        make: |environment| session(recheck::Recheck::new, environment),
    },
    Entry {
        name: lifting::Definitions::NAME,
        summary: "definitions that programs are proved to compute, and pairs of such programs, against runs",
        make: |environment| session(lifting::Definitions::new, environment),
    },
    Entry {
        name: claims::Claims::NAME,
        summary: "claims about pairs written by hand and about random changes of them, judged, against runs",
        make: |environment| session(claims::Claims::new, environment),
    },
    Entry {
        name: derivations::Derivations::NAME,
        summary: "what the proof kernel derives, against evaluation at all points of a box",
        make: |environment| session(derivations::Derivations::new, environment),
    },
    Entry {
        name: written_passes::WrittenPasses::NAME,
        summary: "programs written by hand and random changes of them, before and after the passes they are about",
        make: |environment| session(written_passes::WrittenPasses::new, environment),
    },
];

/// The runner of an oracle.
fn session<O: Oracle + 'static>(
    make: fn(&Environment) -> Result<O, String>,
    environment: &Environment,
) -> Result<Box<dyn Runner>, String> {
    Ok(Box::new(Session::new(make, environment.clone())?))
}

/// The oracle with this name, including those of the self-test, which are not in the list because
/// they fail on purpose.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    ORACLES.iter().chain(self_test::ENTRIES).find(|entry| entry.name == name)
}
