//! The generator: nearly every program is valid and runs without a trap, and every feature occurs.

use std::collections::BTreeMap;

use arbitrary::Unstructured;
use tilewright_interp::{Config as How, Observers};

use super::{BuiltProgram, ProgramCase};
use crate::inputs::arguments;
use crate::{Case, Config, bytes};

fn draw(number: u64) -> ProgramCase {
    draw_of(number, &Config::default())
}

fn draw_of(number: u64, config: &Config) -> ProgramCase {
    let bytes = bytes::of_case(1, "programs", number);
    ProgramCase::draw(&mut Unstructured::new(&bytes), config).unwrap()
}

/// Why a program is undefined, with the checks of definedness and races; `None` if it is not.
fn fault(program: &BuiltProgram) -> Option<String> {
    let mut arguments = arguments(&program.func, &program.symbols, program.seed).unwrap();
    let how = How { threads: 1, observers: Observers { defined: true, race: true }, ..How::default() };
    let valid = tilewright_ir::validate(&program.func).unwrap();
    tilewright_interp::run(valid, &mut arguments, &how).err().map(|error| error.to_string())
}

#[test]
fn nearly_every_byte_string_is_a_program_that_runs() {
    let cases = std::env::var("FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150);
    let (mut invalid, mut seen) = (Vec::new(), BTreeMap::<String, u64>::new());
    for number in 0..cases {
        let case = draw(number);
        for feature in case.features() {
            *seen.entry(feature).or_default() += 1;
        }
        match case.build() {
            Err(why) => invalid.push((number, why)),
            Ok(program) => invalid.extend(fault(&program).map(|why| (number, why))),
        }
    }
    for (number, why) in &invalid {
        eprintln!("{number}: {why}");
    }
    eprintln!("{} of {cases} are valid\n{seen:#?}", cases - invalid.len() as u64);
    assert!((invalid.len() as u64) * 100 <= cases, "{invalid:#?}");
    let rare: Vec<_> = ["kind:", "scope:", "layout:", "dtype:", "rank:", "expr:", "for:", "op:"]
        .iter()
        .filter(|group| !seen.keys().any(|feature| feature.starts_with(**group)))
        .collect();
    assert!(rare.is_empty(), "{rare:?} never came up");
}

#[test]
fn groups_share_elements_and_mean_something_in_order() {
    let mut config = Config::default();
    config.program.group_percent = 100;
    let mut n_groups = 0;
    for number in 0..200 {
        let case = draw_of(number, &config);
        let program = case.build().unwrap();
        let mut arguments = arguments(&program.func, &program.symbols, program.seed).unwrap();
        let how = How { threads: 1, ..How::default() };
        let valid = tilewright_ir::validate(&program.func).unwrap();
        tilewright_interp::run(valid, &mut arguments, &how).unwrap();
        // Loops over threads that follow each other share elements, and do not race.
        let found = fault(&program);
        assert!(found.is_none(), "{number}: {found:?}");
        n_groups += u32::from(case.features().iter().any(|feature| feature == "keep:group"));
    }
    assert!(n_groups > 10, "{n_groups}");
}

#[test]
fn no_bytes_make_a_program_too() {
    let case = ProgramCase::draw(&mut Unstructured::new(&[]), &Config::default()).unwrap();
    assert_eq!(fault(&case.build().unwrap()), None);
}

#[test]
fn simpler_recipes_are_valid_and_end() {
    for number in 0..30 {
        let mut case = draw(number);
        let mut steps = 0;
        while let Some(simpler) = case.simpler().pop() {
            case.build().unwrap();
            assert_ne!(simpler, case);
            case = simpler;
            steps += 1;
            assert!(steps < 2000, "{case:?}");
        }
    }
}

#[test]
fn recipes_are_written_and_read() {
    for number in 0..100 {
        let case = draw(number);
        let text = serde_json::to_string(&case).unwrap();
        assert_eq!(serde_json::from_str::<ProgramCase>(&text).unwrap(), case, "{text}");
    }
}

#[test]
fn programs_that_do_not_know_their_extents_are_valid_and_run() {
    let mut config = Config::default();
    config.program.symbolic_percent = 100;
    let mut n_symbolic = 0;
    for number in 0..200 {
        let program = draw_of(number, &config).build().unwrap();
        assert_eq!(program.func.symbols().len(), program.symbols.len());
        n_symbolic += u32::from(!program.symbols.is_empty());
        assert_eq!(fault(&program), None, "{number}");
    }
    assert!(n_symbolic > 180, "{n_symbolic}");
}
