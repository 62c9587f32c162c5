//! Compilation of a function to the register code of [`crate::code`].
//!
//! Every loop opens a level. A computation is hoisted to the outermost level at which its operands are known, into the
//! code that runs once before that loop, and equal computations are done once. Symbolic extents and scalar parameters
//! have values at this point, so shapes and strides are mostly constants. An innermost nest of loops is compiled a second
//! time, to a [`crate::block_plan`] that runs many iterations at a time. Its accesses with affine indices become streams,
//! whose bounds are checked once before the nest starts.

mod access;
mod expr;
mod nest;
mod stmt;

pub(crate) use nest::MAX_NEST;

use std::collections::HashMap;

use tilewright_ir::{Bindings, Buffer, Diagnostic, Stmt, Var};

use crate::code::{Access, Code, CompiledFunc, Instr, Reg, Site, Stream};
use crate::independence::Ranges;
use crate::ops;

/// Greatest number of instructions and of registers of a function. Each lane of a vector takes its own, so a long
/// expression of 65535 lanes would otherwise exhaust the memory.
const LIMIT: usize = 1 << 22;

/// The input of the compiler.
pub(crate) struct Setup<'a> {
    /// The body of the function.
    pub(crate) body: &'a Stmt,
    /// All buffers of the function, parameters and others.
    pub(crate) buffers: Vec<Buffer>,
    /// Memory slot of each data variable.
    pub(crate) slots: HashMap<Var, usize>,
    /// Bytes of a cell of each memory slot.
    pub(crate) widths: Vec<u64>,
    /// Values of symbols and scalar parameters, encoded as registers.
    pub(crate) scalars: Vec<(Var, u64)>,
    /// The integers among them.
    pub(crate) bindings: Bindings,
    /// Whether innermost nests are compiled to block plans too.
    pub(crate) vectorize: bool,
    /// Whether loops may be distributed over several threads.
    pub(crate) multithreaded: bool,
}

/// Compiles a well-formed function.
///
/// # Errors
/// The function needs more than [`LIMIT`] instructions or registers.
pub(crate) fn compile<'a>(setup: &Setup<'a>) -> Result<CompiledFunc<'a>, Diagnostic> {
    let program = CompiledFunc {
        // Register 0 is the operand of instructions with fewer than three; no instruction writes it.
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
        nest_context: None,
        lane: None,
    };
    // Symbols and scalar parameters are constants here, so that shapes and strides made of them can be folded.
    for (var, value) in &setup.scalars {
        let reg = compiler.constant(*value)?;
        compiler.vars.insert(var.clone(), reg);
    }
    compiler.stmt(setup.body)?;
    compiler.flush();
    compiler.program.nodes = std::mem::take(&mut compiler.levels[0].nodes);
    Ok(compiler.program)
}

/// The computations in a scope, by instruction without destination, and the register that holds each result.
type Numbering = HashMap<Instr, Reg>;

/// The code of a loop while it is compiled; the first level is the function.
#[derive(Default)]
struct Level {
    /// Loop-invariant code.
    pre: Code,
    pre_numbering: Numbering,
    /// The finished nodes of the body.
    nodes: Vec<crate::code::Node>,
    /// The straight-line code after them.
    code: Code,
    /// Scopes of common subexpressions: one for the body, and one for each branch around the current position. What a
    /// branch computes is not available after it.
    numberings: Vec<Numbering>,
}

/// The nest for which a block plan is being compiled.
struct NestContext<'a> {
    /// The variables of its loops, outermost first.
    vars: Vec<&'a Var>,
    /// For each of them the number by which it is split, 1 for none.
    splits: Vec<u64>,
    /// Level of the outermost loop.
    depth: u32,
    /// Code that computes the indices of the first iteration.
    probe: Code,
    probe_numbering: Numbering,
    streams: Vec<Stream>,
}

/// The state of the compiler.
struct Compiler<'s, 'a> {
    setup: &'s Setup<'a>,
    program: CompiledFunc<'a>,
    /// Level at which the value of each register is known.
    depths: Vec<u32>,
    /// Registers of constants, by value.
    constants: HashMap<u64, Reg>,
    /// First register of each variable.
    vars: HashMap<Var, Reg>,
    /// Number of each buffer.
    views: HashMap<Buffer, usize>,
    /// The loops around the current position, outermost first.
    levels: Vec<Level>,
    /// Their variables.
    loops: Vec<(&'a Var, Reg)>,
    ranges: Ranges,
    /// Source span of the current statement, or of the closest one around it that has one.
    span: Option<tilewright_ir::Span>,
    /// Site of the current statement.
    site: u32,
    /// The nest, while code for a block plan is compiled.
    nest_context: Option<NestContext<'a>>,
    /// The only lane to compute, inside a conditional that selects by lane.
    lane: Option<u16>,
}

/// The error for a function that exceeds [`LIMIT`].
fn too_large() -> Diagnostic {
    Diagnostic::error("program-too-large", None, format!("the program takes more than {LIMIT} instructions"))
        .with_help("every lane of a vector takes instructions of its own; use fewer lanes and a loop")
}

impl<'a> Compiler<'_, 'a> {
    /// Number of loops around the current position.
    fn depth(&self) -> u32 {
        u32::try_from(self.levels.len() - 1).unwrap_or(u32::MAX)
    }

    /// The innermost level.
    fn level(&mut self) -> &mut Level {
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// Allocates `count` consecutive registers whose values are known at the level `depth`; returns the first one.
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

    /// The register that holds an integer constant.
    fn int(&mut self, value: i64) -> Result<Reg, Diagnostic> {
        self.constant(value.cast_unsigned())
    }

    /// The value of a register that holds a constant.
    fn constant_value(&self, reg: Reg) -> Option<u64> {
        let value = self.program.registers[reg as usize];
        (self.constants.get(&value) == Some(&reg)).then_some(value)
    }

    /// Emits a computation that cannot trap, at the outermost level where its operands are known. Folds constants and
    /// reuses an equal computation. Returns the register of the result.
    fn emit_hoisted(&mut self, mut instr: Instr) -> Result<Reg, Diagnostic> {
        let operands = [instr.a, instr.b, instr.c];
        if operands.iter().all(|&reg| self.constant_value(reg).is_some()) {
            let value = ops::compute(&instr, &self.program.registers);
            if let Ok(value) = value {
                return self.constant(value);
            }
        }
        let depth = operands.iter().map(|&reg| self.depths[reg as usize]).max().unwrap_or(0);
        if depth >= self.depth() {
            return self.emit_once(instr);
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

    /// Emits a computation at the current position, which may trap, or reuses an equal one of the same iteration.
    fn emit_once(&mut self, mut instr: Instr) -> Result<Reg, Diagnostic> {
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

    /// Emits an instruction at the current position.
    fn emit(&mut self, instr: Instr) -> Result<(), Diagnostic> {
        let site = self.site;
        let level = self.level();
        level.code.push(instr, site);
        if level.code.instrs.len() > LIMIT { Err(too_large()) } else { Ok(()) }
    }

    /// Runs `inner` with its output redirected, as the code of a branch. Returns the result of `inner`, the nodes, and
    /// the straight-line code after them.
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

    /// Ends the straight-line code, so that another node can follow it.
    fn flush(&mut self) {
        let level = self.level();
        if !level.code.is_empty() {
            let code = std::mem::take(&mut level.code);
            level.nodes.push(crate::code::Node::Code(code));
        }
    }

    /// Records a statement as a site and returns its number.
    fn enter_site(&mut self, stmt: &'a Stmt) -> Result<u32, Diagnostic> {
        let number = u32::try_from(self.program.sites.len()).map_err(|_| too_large())?;
        self.program.sites.push(Site { stmt, span: self.span, loops: self.loops.clone() });
        Ok(number)
    }

    /// Records an access and returns its number.
    fn access(&mut self, access: Access) -> Result<Reg, Diagnostic> {
        let number = Reg::try_from(self.program.accesses.len()).map_err(|_| too_large())?;
        self.program.accesses.push(access);
        Ok(number)
    }
}
