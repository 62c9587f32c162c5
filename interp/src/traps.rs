//! Construction of traps: kind, message, source span and the values of the enclosing loops.
//!
//! These functions are cold. They take the frame as it was when the fault was detected.

use tilewright_ir::ScalarError;

use crate::code::Access;
use crate::config::{Trap, TrapKind};
use crate::exec::{Frame, Machine};
use crate::memory::View;
use crate::num::decode;

#[expect(clippy::unnecessary_box_returns, reason = "a trap is boxed where it is made, so that results stay small")]
impl Machine<'_> {
    /// The element of an access as text, such as `A[3, 7]` or `A[3] (lane 1)`.
    pub(crate) fn describe_element(&self, access: &Access, frame: &Frame) -> String {
        let indices: Vec<_> =
            access.indices.iter().map(|&reg| frame.registers[reg as usize].cast_signed().to_string()).collect();
        let buffer = &self.program.buffers[access.view as usize];
        let lane = if buffer.dtype.lanes > 1 { format!(" (lane {})", access.lane) } else { String::new() };
        format!("{buffer}[{}]{lane}", indices.join(", "))
    }

    /// The index of an access along `axis` is outside the extents of its view.
    #[cold]
    pub(crate) fn index_out_of_bounds(
        &self,
        access: &Access,
        axis: usize,
        view: &View,
        site: u32,
        frame: &Frame,
    ) -> Box<Trap> {
        let shape: Vec<_> = view.extents.iter().map(ToString::to_string).collect();
        let shape = shape.join(", ");
        let message =
            format!("{} is out of bounds on axis {axis}: the shape is ({shape})", self.describe_element(access, frame));
        self.trap(TrapKind::OutOfBounds, message, site, frame)
    }

    /// All indices are in bounds, but the address they give is outside the memory that the buffer is a view of.
    #[cold]
    pub(crate) fn outside_allocation(&self, access: &Access, site: u32, frame: &Frame) -> Box<Trap> {
        let message = format!("{} lies outside the memory of its allocation", self.describe_element(access, frame));
        self.trap(TrapKind::OutOfBounds, message, site, frame)
    }

    /// An operator has no value on its operands.
    #[cold]
    pub(crate) fn arithmetic_trap(&self, error: ScalarError, site: u32, frame: &Frame) -> Box<Trap> {
        let kind = match error {
            ScalarError::ShiftAmount(_) => TrapKind::ShiftRange,
            ScalarError::DivisionByZero | ScalarError::Type | ScalarError::Overflow => TrapKind::DivisionByZero,
        };
        self.trap(kind, error.to_string(), site, frame)
    }

    /// A trap at a site, with the values that the loop variables have in `frame`.
    #[cold]
    pub(crate) fn trap(&self, kind: TrapKind, message: String, site: u32, frame: &Frame) -> Box<Trap> {
        let site = &self.program.sites[site as usize];
        let value = |ty, reg: u32| decode(ty, frame.registers[reg as usize]).as_int().unwrap_or_default();
        let loops = site.loops.iter();
        Box::new(Trap {
            kind,
            message,
            buffer: None,
            span: site.span,
            loops: loops.map(|(var, reg)| (var.name().to_owned(), value(var.dtype().scalar, *reg))).collect(),
            statement: crate::statement_head::statement_head(site.stmt),
        })
    }
}
