//! The parts of the project that planted faults break, and the oracles that look at each of them.
//!
//! A measurement begins with the oracles of a fault's part: they get more of the time than the others, which get their turns, too.

/// The part that a fault breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Area {
    /// Passes that change layouts, and the algebra that passes use.
    Passes,
    /// Passes that change loops.
    Loops,
    /// Passes that change memory.
    Storage,
    /// The lowering of TE, and its judge.
    Lowering,
    /// Blocks of S-TIR and schedules on them.
    Blocks,
    /// The judge of programs: the walk along a correspondence.
    Judge,
    /// The judge of programs: iterations, values and sums that were moved.
    Values,
    /// The judge of programs: runs on terms.
    Terms,
    /// Threads and barriers: phases, races, in the judge and in the interpreter.
    Threads,
    /// The judge of index maps and layouts.
    Maps,
    /// The kernel: terms, their encoding, facts, certificates.
    Kernel,
    /// The memory planner, and its judge.
    Planner,
    /// The reader or the printer.
    Script,
    /// The interpreter.
    Interpreter,
    /// The code generator.
    Codegen,
}

impl Area {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 15] = [
        Self::Passes,
        Self::Loops,
        Self::Storage,
        Self::Lowering,
        Self::Blocks,
        Self::Judge,
        Self::Values,
        Self::Terms,
        Self::Threads,
        Self::Maps,
        Self::Kernel,
        Self::Planner,
        Self::Script,
        Self::Interpreter,
        Self::Codegen,
    ];

    /// The name shown in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Loops => "loops",
            Self::Storage => "storage",
            Self::Lowering => "lowering",
            Self::Blocks => "blocks",
            Self::Judge => "judge",
            Self::Values => "values",
            Self::Terms => "terms",
            Self::Threads => "threads",
            Self::Maps => "maps",
            Self::Kernel => "kernel",
            Self::Planner => "planner",
            Self::Script => "script",
            Self::Interpreter => "interpreter",
            Self::Codegen => "codegen",
        }
    }

    /// The oracles that look at the part: those that are tried first.
    pub const fn oracles(self) -> &'static [&'static str] {
        match self {
            Self::Passes => &["passes", "padding", "judge_programs", "written_passes"],
            Self::Loops | Self::Storage => &["passes", "judge_programs", "written_passes"],
            Self::Lowering => &["schedules"],
            Self::Blocks => &["blocks", "block_schedules"],
            Self::Judge => &["judge_programs", "judge_pairs", "claims"],
            Self::Values => &["judge_pairs", "lifting", "claims"],
            Self::Terms => &["judge_pairs", "claims"],
            Self::Threads => &["interleavings", "interpreter", "judge_programs"],
            Self::Maps => &["judge_maps", "judge_layouts", "certificate"],
            Self::Kernel => &["encoder", "derivations", "judge_maps", "recheck", "second_judge"],
            Self::Planner => &["planner", "steps"],
            Self::Script => &["roundtrip"],
            Self::Interpreter => &["arithmetic", "interpreter", "passes", "order"],
            Self::Codegen => &["device"],
        }
    }
}
