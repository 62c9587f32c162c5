//! Runs a program after every pass with different values in the padding of its arguments: the
//! result must not depend on them.
//!
//! Programs whose layouts have no padding, or whose padding has a specified value, are undecided.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_interp::{Arguments, Observers};
use tilewright_ir::Scope;

use crate::Config;
use crate::case::{Case, Redrawn};
use crate::chain::{
    ArgumentLayout, Chain, ChainLink, Outputs, PaddingFill, differences, error_kind, interpreter_config, written_params,
};
use crate::map::Op;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::program::ProgramCase;
use crate::program::recipe::Layout;

/// The bytes with which padding is filled. As a float, the second is NaN; as an integer, -1.
const POISON: [u8; 2] = [0x42, 0xFF];

/// A program whose first input has a layout with padding; its other tensors have a layout in 90 %
/// of the cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Padded(pub ProgramCase);

impl From<ProgramCase> for Padded {
    fn from(case: ProgramCase) -> Self {
        Self(case)
    }
}

impl Redrawn for Padded {
    /// Draws a program, and adds a padding of 1 to 3 elements in front of an axis of its first
    /// input.
    type Of = ProgramCase;

    fn redraw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<ProgramCase> {
        let mut config = config.clone();
        config.program.layout_percent = 90;
        let mut case = ProgramCase::draw(u, &config)?;
        if let ProgramCase::Recipe(recipe) = &mut case
            && let Some(input) = recipe.inputs.first_mut()
        {
            input.scope = Scope::Global;
            // Padding behind the last index would not remain: a physical shape ends at the largest
            // index.
            let pad = Op::Pad(u.int_in_range(0..=5)?, u.int_in_range(1..=3)?, u.int_in_range(0..=2)?);
            match &mut input.layout {
                Layout::Ops { ops, .. } => ops.insert(0, pad),
                layout => *layout = Layout::Ops { ops: vec![pad], separators: Vec::new(), cuts: Vec::new() },
            }
        }
        Ok(case)
    }

    fn inner(&self) -> &ProgramCase {
        &self.0
    }
}

/// The oracle `padding`; see the module.
#[derive(Debug, Default)]
pub struct Padding;

impl Padding {
    /// Creates the oracle.
    ///
    /// # Errors
    /// Never.
    pub fn new(_: &Environment) -> Result<Self, String> {
        Ok(Self)
    }
}

impl Oracle for Padding {
    type Case = Padded;

    const NAME: &'static str = "padding";

    fn check(&mut self, case: &Padded, tally: &mut Tally) -> Outcome {
        let (chain, inputs) = match Chain::of_case(&case.0) {
            Ok(ready) => ready,
            Err(outcome) => return outcome,
        };
        match independent(&chain, &inputs, tally) {
            Ok(0) => Outcome::Undecided("no padding".into()),
            Ok(_) => Outcome::Held,
            Err(outcome) => outcome,
        }
    }
}

/// Compares runs with filled padding against the unpadded program; returns the number of runs. 0 if
/// nothing has padding.
pub(super) fn independent(chain: &Chain, inputs: &Arguments, tally: &mut Tally) -> Result<u64, Outcome> {
    let Some(input) = chain.links.first() else { return Ok(0) };
    let padded: Vec<&ChainLink> =
        chain.links.iter().filter(|link| link.layouts.iter().any(ArgumentLayout::has_padding)).collect();
    if padded.is_empty() {
        return Ok(0);
    }
    let is_written = written_params(&input.func);
    let left = |link: &ChainLink, blank: PaddingFill| -> Result<Outputs, (String, String)> {
        let mut packed = link.pack(inputs, blank).map_err(|why| ("arguments".to_owned(), why))?;
        // Undefined elements count as 0 here; the oracle `passes` checks that none is read.
        let how =
            tilewright_interp::Config { observers: Observers { defined: false, race: false }, ..interpreter_config() };
        link.run(&mut packed, &how).map_err(|error| (error_kind(&error), error.to_string()))?;
        link.unpack(&packed, inputs, &is_written).map_err(|why| ("padding".to_owned(), why))
    };
    let expected = left(input, PaddingFill::Undefined);
    let expected = expected.map_err(|(kind, _)| Outcome::Invalid(format!("the program stops: {kind}")))?;
    let mut runs = 0;
    for link in padded {
        let pass = link.pass;
        for byte in POISON {
            let outputs = left(link, PaddingFill::Byte(byte))
                .map_err(|(kind, why)| Failure::outcome(format!("after {pass} poison in the padding: {kind}"), why))?;
            let (lanes, difference) = differences(&input.func, &expected, &outputs);
            tally.count("values compared", lanes);
            runs += 1;
            if let Some(why) = difference {
                let what = format!("after {pass} the result depends on the padding");
                return Err(Failure::outcome(what, format!("with bytes {byte:#x}: {why}")));
            }
        }
        tally.saw(&format!("padding after:{pass}"));
    }
    tally.count("runs with poison", runs);
    Ok(runs)
}
