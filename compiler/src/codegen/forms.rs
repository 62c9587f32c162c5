//! The kernels of a program in the forms in which they are written and run.
//!
//! `check` runs what `compile` writes, so both take the text from [`Kernels`], which alone decides about the options of a
//! compilation. A program with textures has a second form, whose kernels test each place in a texture before they access
//! it ([`Options::checked`]): devices do not trap an access outside of a texture.

use std::collections::BTreeSet;

use tilewright_ir::{Diagnostic, PrimFunc, validate};
use tilewright_verify::{Judge, Report};

use super::divisions::{Divisions, Written, judged};
use super::spread::Spread;
use super::{Generated, OPENCL, Options, generate_proved};

/// The kernels of one program in every form that is written or run.
#[derive(Clone, Debug)]
pub struct Kernels {
    plain: Generated,
    /// `None` if both forms have the same text.
    checked: Option<Generated>,
    reports: Vec<Report>,
}

impl Kernels {
    /// Generates the kernels of a function in both forms, without a judge: every integer division calls a helper.
    ///
    /// # Errors
    /// The function is not well formed, or one of the errors of [`generate_proved`].
    pub fn of(func: &PrimFunc) -> Result<Self, Vec<Diagnostic>> {
        Self::with(&Divisions::unproved(validate(func)?))
    }

    /// Generates the kernels of a function in both forms. The judge is asked whether iterations of the loops that lead each nest are
    /// independent; those that are become work-items. It is asked about each division, too; those that
    /// it proves are written with the operators of C, all others as calls of a helper.
    ///
    /// # Errors
    /// As for [`Kernels::of`].
    pub fn proved(judge: &Judge, func: &PrimFunc) -> Result<Self, Vec<Diagnostic>> {
        let Spread { func, reports, notes } = Spread::judged(judge, func);
        let kernels = judged(judge, validate(&func)?, Self::with, |forms| {
            let mut written = Written::default();
            [Some(&forms.plain), forms.checked.as_ref()]
                .into_iter()
                .flatten()
                .for_each(|form| written.extend(&form.divisions));
            written.calls
        })?;
        Ok(kernels.spread(reports, &notes))
    }

    /// Adds what was proved of loops that run as work-items, and what is to be known of those that do not.
    fn spread(mut self, reports: Vec<Report>, notes: &BTreeSet<String>) -> Self {
        self.reports.splice(0..0, reports);
        for form in [Some(&mut self.plain), self.checked.as_mut()].into_iter().flatten() {
            form.metadata.notes.extend(notes.iter().cloned());
            form.metadata.notes.sort_unstable();
        }
        self
    }

    /// Both forms with the divisions that are proved.
    fn with(divisions: &Divisions<'_>) -> Result<Self, Vec<Diagnostic>> {
        let form = |checked| generate_proved(&OPENCL, divisions, &Options { checked, ..Options::default() });
        let (plain, checked) = (form(false)?, form(true)?);
        let checked = (checked.source != plain.source).then_some(checked);
        Ok(Self { plain, checked, reports: divisions.reports().to_vec() })
    }

    /// The form without tests of places in textures, which `compile` writes unless it is told otherwise.
    pub fn plain(&self) -> &Generated {
        &self.plain
    }

    /// The form that tests each place in a texture, which `compile --checked` writes; `None` if the program accesses no
    /// texture, so that there is nothing to test and [`Kernels::plain`] is the only form.
    pub fn checked(&self) -> Option<&Generated> {
        self.checked.as_ref()
    }

    /// The reports on serial loops that run as work-items (obligation *race*) and on the divisions that are written with the operators
    /// of C (obligation *dividend*), all of them proved.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }
}
