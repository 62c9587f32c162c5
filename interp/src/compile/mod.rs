//! Translation of a function to [`crate::code`].
//!
//! Every loop opens a level. A computation goes to the outermost level where its operands are known, into the code
//! that runs once before that loop; equal computations are done once. Symbolic extents and scalar parameters have their
//! values by now, so that shapes and strides are mostly constants. An innermost nest of loops is translated a second time,
//! into a [`crate::plan`] that runs many iterations at a time, with accesses that move by constant steps turned into
//! streams, whose bounds are checked before the nest starts.

mod access;
mod expr;
mod nest;
mod stmt;

pub(crate) use nest::MAX_NEST;

use std::collections::HashMap;

use tilewright_ir::{Bindings, Buffer, Diagnostic, Stmt, Var};

use crate::code::{Access, Code, Instr, Program, Reg, Site, Stream};
use crate::independence::Ranges;
use crate::ops;

/// Most instructions and registers of a program: a vector of 65535 lanes in a long expression is refused, not tried.
const LIMIT: usize = 1 << 22;

/// What a function needs beside its body.
pub(crate) struct Setup<'a> {
    pub(crate) body: &'a Stmt,
    pub(crate) buffers: Vec<Buffer>,
    /// Slot of each data variable.
    pub(crate) slots: HashMap<Var, usize>,
    pub(crate) widths: Vec<u64>,
    /// Values of symbols and scalar parameters, as registers.
    pub(crate) scalars: Vec<(Var, u64)>,
    /// The integers among them.
    pub(crate) bindings: Bindings,
    /// Whether innermost loops get a second body.
    pub(crate) streams: bool,
    /// Whether loops may be spread over threads.
    pub(crate) spreads: bool,
}

/// Translates a well formed function.
pub(crate) fn compile<'a>(setup: &Setup<'a>) -> Result<Program<'a>, Diagnostic> {
    let program = Program {
        registers: vec![0],
        nodes: Vec::new(),
        accesses: Vec::new(),
        sites: Vec::new(),
        messages: Vec::new(),
        buffers: setup.buffers.clone(),
        widths: setup.widths.clone(),
        slot_of: setup.buffers.iter().map(|buffer| setup.slots.get(&buffer.data).copied().unwrap_or(0)).collect(),
    };
    let mut compiler = Compiler {
        setup,
        program,
        depths: vec![0],
        constants: HashMap::new(),
        vars: HashMap::new(),
        views: setup.buffers.iter().enumerate().map(|(number, buffer)| (buffer.clone(), number)).collect(),
        levels: vec![Level::default()],
        loops: Vec::new(),
        ranges: Ranges::new(&setup.bindings),
        span: None,
        site: 0,
        stream_of: None,
        lane: None,
    };
    for (var, value) in &setup.scalars {
        let reg = compiler.constant(*value)?;
        compiler.vars.insert(var.clone(), reg);
    }
    compiler.stmt(setup.body)?;
    compiler.flush();
    compiler.program.nodes = std::mem::take(&mut compiler.levels[0].nodes);
    Ok(compiler.program)
}

/// Equal computations in a scope, and the register that has the result.
type Numbering = HashMap<Instr, Reg>;

/// What is being translated for a loop; the first level is the function.
#[derive(Default)]
struct Level {
    pre: Code,
    pre_numbering: Numbering,
    nodes: Vec<crate::code::Node>,
    code: Code,
    /// One scope, and one more inside each branch.
    numberings: Vec<Numbering>,
}

/// The nest that code for a plan is being made for.
struct StreamOf<'a> {
    /// The variables of its loops, outermost first.
    vars: Vec<&'a Var>,
    /// Level of the outermost loop.
    depth: u32,
    probe: Code,
    probe_numbering: Numbering,
    streams: Vec<Stream>,
}

struct Compiler<'s, 'a> {
    setup: &'s Setup<'a>,
    program: Program<'a>,
    /// Level at which each register has its value.
    depths: Vec<u32>,
    constants: HashMap<u64, Reg>,
    vars: HashMap<Var, Reg>,
    views: HashMap<Buffer, usize>,
    levels: Vec<Level>,
    loops: Vec<(&'a Var, Reg)>,
    ranges: Ranges,
    span: Option<tilewright_ir::Span>,
    site: u32,
    stream_of: Option<StreamOf<'a>>,
    /// The lane that is computed, below a conditional that chooses for each lane.
    lane: Option<u16>,
}

fn too_large() -> Diagnostic {
    Diagnostic::error("program-too-large", None, format!("the program takes more than {LIMIT} instructions"))
        .with_help("vectors of many lanes are taken apart; use fewer lanes and a loop")
}

impl<'a> Compiler<'_, 'a> {
    /// Number of loops around.
    fn depth(&self) -> u32 {
        u32::try_from(self.levels.len() - 1).unwrap_or(u32::MAX)
    }

    fn level(&mut self) -> &mut Level {
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// `count` new registers in a row, with values at a level.
    fn registers(&mut self, count: usize, depth: u32) -> Result<Reg, Diagnostic> {
        let first = self.program.registers.len();
        if first + count > LIMIT {
            return Err(too_large());
        }
        self.program.registers.resize(first + count, 0);
        self.depths.resize(first + count, depth);
        Reg::try_from(first).map_err(|_| too_large())
    }

    /// The register that holds a constant.
    fn constant(&mut self, value: u64) -> Result<Reg, Diagnostic> {
        if let Some(&reg) = self.constants.get(&value) {
            return Ok(reg);
        }
        let reg = self.registers(1, 0)?;
        self.program.registers[reg as usize] = value;
        self.constants.insert(value, reg);
        Ok(reg)
    }

    fn int(&mut self, value: i64) -> Result<Reg, Diagnostic> {
        self.constant(value.cast_unsigned())
    }

    /// The value of a register that is a constant.
    fn known(&self, reg: Reg) -> Option<u64> {
        let value = self.program.registers[reg as usize];
        (self.constants.get(&value) == Some(&reg)).then_some(value)
    }

    /// Emits a computation that cannot trap, where its operands are known, unless it was done already.
    fn pure(&mut self, mut instr: Instr) -> Result<Reg, Diagnostic> {
        let operands = [instr.a, instr.b, instr.c];
        if operands.iter().all(|&reg| self.known(reg).is_some()) {
            let value = ops::compute(&instr, &self.program.registers);
            if let Ok(value) = value {
                return self.constant(value);
            }
        }
        let depth = operands.iter().map(|&reg| self.depths[reg as usize]).max().unwrap_or(0);
        if depth >= self.depth() {
            return self.inline(instr);
        }
        let home = depth as usize + 1;
        if let Some(&reg) = self.levels[home].pre_numbering.get(&instr) {
            return Ok(reg);
        }
        let key = instr;
        instr.d = self.registers(1, depth)?;
        self.levels[home].pre_numbering.insert(key, instr.d);
        self.levels[home].pre.push(instr, self.site);
        Ok(instr.d)
    }

    /// Emits a computation here, unless it was done in this iteration already.
    fn inline(&mut self, mut instr: Instr) -> Result<Reg, Diagnostic> {
        let depth = self.depth();
        let level = self.level();
        if level.numberings.is_empty() {
            level.numberings.push(Numbering::new());
        }
        if let Some(&reg) = level.numberings.iter().find_map(|scope| scope.get(&instr)) {
            return Ok(reg);
        }
        let key = instr;
        instr.d = self.registers(1, depth)?;
        let level = self.level();
        if let Some(scope) = level.numberings.last_mut() {
            scope.insert(key, instr.d);
        }
        self.emit(instr)?;
        Ok(instr.d)
    }

    /// Emits an instruction here.
    fn emit(&mut self, instr: Instr) -> Result<(), Diagnostic> {
        let site = self.site;
        let level = self.level();
        level.code.push(instr, site);
        if level.code.instrs.len() > LIMIT { Err(too_large()) } else { Ok(()) }
    }

    /// Runs `inner` with the code going elsewhere, as a branch; gives that code and the nodes before it.
    fn branch<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, Diagnostic>,
    ) -> Result<(T, Vec<crate::code::Node>, Code), Diagnostic> {
        let level = self.level();
        if level.numberings.is_empty() {
            level.numberings.push(Numbering::new());
        }
        let outer_code = std::mem::take(&mut level.code);
        let outer_nodes = std::mem::take(&mut level.nodes);
        level.numberings.push(Numbering::new());
        let result = inner(self)?;
        let level = self.level();
        level.numberings.pop();
        let code = std::mem::replace(&mut level.code, outer_code);
        let nodes = std::mem::replace(&mut level.nodes, outer_nodes);
        Ok((result, nodes, code))
    }

    /// Ends the straight-line code, so that another node may follow.
    fn flush(&mut self) {
        let level = self.level();
        if !level.code.is_empty() {
            let code = std::mem::take(&mut level.code);
            level.nodes.push(crate::code::Node::Code(code));
        }
    }

    /// The current statement as a site.
    fn enter_site(&mut self, stmt: &'a Stmt) -> Result<u32, Diagnostic> {
        let number = u32::try_from(self.program.sites.len()).map_err(|_| too_large())?;
        self.program.sites.push(Site { stmt, span: self.span, loops: self.loops.clone() });
        Ok(number)
    }

    fn access(&mut self, access: Access) -> Result<Reg, Diagnostic> {
        let number = Reg::try_from(self.program.accesses.len()).map_err(|_| too_large())?;
        self.program.accesses.push(access);
        Ok(number)
    }
}
