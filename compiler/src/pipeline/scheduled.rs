//! Functions in TVMScript with a schedule on blocks: how they are read, and how each step is proved.

use std::time::Instant;

use tilewright_ir::{Diagnostic, PrimFunc, validate};
use tilewright_verify::Judge;

use super::reading::select;
use super::{CheckFault, Lowering, Program, Programs, malformed};
use crate::block_schedule::Step;
use crate::te;

/// Reads functions in TVMScript and the schedules of them. A function without a schedule is taken as it is.
pub(super) fn read(text: &str, function: Option<&str>) -> Result<Programs, Vec<Diagnostic>> {
    let scripted = tilewright_script::read_scripted(text)?;
    let tree = tilewright_script::te::read(text)?;
    let te::Scheduled { schedules, warnings } = te::evaluate_scheduled(&tree, &scripted)?;
    // Two definitions may have functions of one name; parameters are objects of their own.
    let is_same = |one: &PrimFunc, other: &PrimFunc| one.name == other.name && one.params == other.params;
    let is_scheduled = |func: &PrimFunc| schedules.iter().any(|one| is_same(one.first(), func));
    let plain = scripted.iter().flat_map(|one| &one.funcs).filter(|func| !is_scheduled(func));
    let plain = plain.map(|func| (func.clone(), Vec::new()));
    let all = plain.chain(schedules.iter().map(|one| (one.first().clone(), one.steps().to_vec())));
    let program = |(func, scheduled)| Program { func, definition: None, written: None, assumed: Vec::new(), scheduled };
    let mut programs: Vec<Program> = all.map(program).collect();
    unique_names(&mut programs);
    let programs = select(programs, function).map_err(|fault| vec![fault])?;
    Ok(Programs { programs, warnings })
}

/// Renames functions so that all names differ: a file may have several schedules of one function.
fn unique_names(programs: &mut [Program]) {
    let mut taken: Vec<String> = Vec::new();
    for program in programs {
        let base = program.func.name.clone();
        let numbered = (2..).map(|count| format!("{base}_{count}"));
        let free = std::iter::once(base.clone()).chain(numbered).find(|name| !taken.contains(name));
        let name = free.unwrap_or(base);
        program.func.name.clone_from(&name);
        program.scheduled.iter_mut().for_each(|step| step.func.name.clone_from(&name));
        taken.push(name);
    }
}

impl Lowering {
    /// Proves a step of a schedule on blocks, and what the blocks say of themselves after it.
    pub(super) fn apply(&mut self, step: &Step, judge: &Judge, allow_unknown: bool) -> Result<(), CheckFault> {
        validate(&step.func).map_err(|faults| malformed(step.name, &faults))?;
        let before = self.last().clone();
        let after = (&before, step.func.clone(), step.evidence.clone());
        self.change(step.name, Instant::now(), after, (judge, allow_unknown), Some(step));
        Ok(())
    }
}
