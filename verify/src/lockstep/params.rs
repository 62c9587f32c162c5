//! The calling conventions of two programs side by side: a caller that calls the one can call the other.

use tilewright_ir::{PrimFunc, Var};

use super::Lockstep;

impl Lockstep<'_> {
    /// The calling convention: parameters correspond, and so do their buffers.
    pub(super) fn params(&mut self, before: &PrimFunc, after: &PrimFunc) {
        let types = |func: &PrimFunc| func.params.iter().map(Var::dtype).collect::<Vec<_>>();
        if types(before) != types(after) {
            return self.stuck("the parameters differ in number or type");
        }
        let (known, called) = (before.symbols(), after.symbols());
        for (old, new) in before.params.iter().zip(&after.params) {
            match (before.param_buffer(old), after.param_buffer(new)) {
                // The claims speak of the integers of the program before: each has to stand where it stood.
                (None, None) if old != new && (known.contains(old) || known.contains(new) || called.contains(new)) => {
                    self.stuck(format!("the parameter `{old}` became `{new}`, which stands for another integer"));
                }
                (None, None) => {}
                (Some(x), Some(y)) => {
                    if !self.relation.relates(x, y) {
                        self.stuck(format!("nothing is claimed of how parameter `{x}` became `{y}`"));
                    }
                }
                _ => self.stuck(format!("parameter `{old}` is a buffer on one side only")),
            }
        }
    }
}
