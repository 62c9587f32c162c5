//! The list of planted faults: places where the project can be made wrong on purpose, to measure
//! which faults the oracles detect.
//!
//! The switch is [`tilewright_ir::sabotage`]; the branches are in the code that they break, under
//! the names of this list. A *decoy* changes the code but not its behaviour: an oracle that reports
//! one is itself wrong.

/// The component that a fault breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Area {
    /// A pass, or the algebra that passes use.
    Passes,
    /// The judge: its encoding and its tiers.
    Judge,
    /// The memory planner.
    Planner,
    /// The reader or the printer.
    Script,
    /// The interpreter.
    Interpreter,
    /// The code generator.
    Codegen,
}

impl Area {
    /// The name shown in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Judge => "judge",
            Self::Planner => "planner",
            Self::Script => "script",
            Self::Interpreter => "interpreter",
            Self::Codegen => "codegen",
        }
    }
}

/// A planted fault.
#[derive(Clone, Copy, Debug)]
pub struct PlantedFault {
    /// The name, in the sources and on the command line.
    pub name: &'static str,
    /// The component it breaks.
    pub area: Area,
    /// One line that says what is wrong when the fault is on; for a decoy, what is different and
    /// yet equivalent.
    pub summary: &'static str,
    /// Whether the change has no observable effect.
    pub is_decoy: bool,
}

/// An entry that has an effect.
const fn fault(area: Area, name: &'static str, summary: &'static str) -> PlantedFault {
    PlantedFault { name, area, summary, is_decoy: false }
}

/// An entry that has none.
const fn decoy(area: Area, name: &'static str, summary: &'static str) -> PlantedFault {
    PlantedFault { name, area, summary, is_decoy: true }
}

/// All planted faults, grouped by area.
pub static FAULTS: &[PlantedFault] = &[
    fault(Area::Passes, "lower-blocks-drops-where", "lower_blocks runs instances that the predicate leaves out"),
    fault(Area::Passes, "flatten-swaps-strides", "flatten_buffer takes the extent of the axis before for a stride"),
    fault(Area::Passes, "flatten-forgets-offset", "flatten_buffer drops the offset of a buffer with strides"),
    fault(Area::Passes, "remap-unit-lanes", "the lanes of a vector access that is moved are taken for neighbours"),
    fault(Area::Passes, "divide-ignores-rest", "(g*s + b) // (g*t) becomes s // t whatever b is"),
    fault(Area::Passes, "divide-towards-zero", "a quotient between -1 and 0 becomes 0"),
    fault(
        Area::Passes,
        "remainder-keeps-block",
        "a dividend in one block keeps the multiple of the divisor in its remainder",
    ),
    fault(Area::Passes, "negation-loses-equality", "the opposite of < is >"),
    fault(Area::Passes, "compare-decides-early", "x < y is taken for true where x <= y"),
    fault(Area::Passes, "interval-two-corners", "the interval of a product looks at two of its four corners"),
    fault(Area::Passes, "symbol-is-four", "an extent that is not known is taken for at least 4"),
    fault(
        Area::Passes,
        "layout-loses-extent",
        "a layout may be one after which no argument tells an extent that is needed",
    ),
    fault(Area::Passes, "shape-forgets-last", "the extent of an axis is its largest index where a search finds that"),
    fault(Area::Passes, "padding-not-declared", "apply_buffer_transforms does not say which axes are padded"),
    fault(Area::Passes, "tile-skips-split", "a tiled dimension of up to two tiles is taken for one tile"),
    fault(Area::Passes, "tile-count-floors", "the number of tiles is rounded down"),
    fault(Area::Passes, "fill-misses-last", "the padding of the last tile is not written"),
    fault(Area::Passes, "vectorize-unit-stride", "vectorize takes every ramp for one of neighbours"),
    fault(Area::Passes, "vectorize-forgets-start", "vectorize takes the first lane to be the loop's number 0"),
    fault(Area::Passes, "vectorize-reversed-lanes", "a - ramp becomes a ramp that still rises"),
    fault(Area::Passes, "texture-guard-dropped", "a condition on the channels of a texel is dropped"),
    fault(Area::Passes, "certificate-forgets-offset", "a digit certificate is found without the offsets of its sums"),
    fault(Area::Passes, "te-split-unguarded", "a split whose factor does not divide the extent has no guard"),
    fault(Area::Passes, "te-guard-one-late", "the guard of such a split lets one iteration too many pass"),
    fault(Area::Passes, "te-fuse-swapped", "a fused loop is taken apart with quotient and remainder swapped"),
    fault(Area::Passes, "te-starts-too-deep", "a reduction starts inside the reduced loops, in every iteration again"),
    fault(Area::Passes, "split-unguarded", "the pass split puts no guard where the factor does not divide the extent"),
    fault(Area::Passes, "split-drops-rest", "the pass split leaves out the last iterations if they fill no inner loop"),
    fault(Area::Passes, "fuse-swaps", "the pass fuse exchanges the values of two loops"),
    fault(Area::Passes, "reorder-drops-guards", "the pass reorder forgets conditions between the loops"),
    fault(Area::Passes, "unroll-drops-last", "unroll writes out one iteration less"),
    fault(Area::Passes, "loop-partition-best-case", "loop_partition takes the loops inside at the values that help"),
    fault(Area::Passes, "loop-partition-one-too-many", "the main part that loop_partition makes is too long by one"),
    fault(Area::Passes, "remove-no-op-forgets-else", "remove_no_op turns an else branch into a then branch"),
    fault(Area::Passes, "remove-no-op-takes-single-loops", "remove_no_op removes loops of one iteration"),
    fault(Area::Passes, "compute-at-short-box", "compute_at computes one element less of each axis than is read"),
    fault(Area::Passes, "compute-at-unguarded", "compute_at computes elements that overhang the buffer"),
    fault(Area::Passes, "inline-swaps-axes", "compute_inline takes the indices of a load in reverse order"),
    fault(Area::Passes, "double-buffer-one-half", "double_buffer fills the half that is still read"),
    fault(Area::Passes, "double-buffer-starts-empty", "double_buffer does not fill the buffer for the first iteration"),
    fault(
        Area::Passes,
        "double-buffer-unguarded",
        "double_buffer fills the buffer for an iteration after the last one",
    ),
    decoy(Area::Passes, "double-buffer-fills-late", "double_buffer fills the other half behind what reads this one"),
    fault(
        Area::Passes,
        "compact-forgets-start",
        "compact_buffer_allocation does not move the first element to the start",
    ),
    fault(
        Area::Passes,
        "compact-one-less",
        "compact_buffer_allocation keeps one element less of each axis than is used",
    ),
    fault(Area::Passes, "storage-counts-first-use", "storage_rewrite takes a buffer as free after its first use"),
    fault(Area::Passes, "storage-in-place-anywhere", "storage_rewrite overwrites elements that other iterations read"),
    fault(
        Area::Passes,
        "storage-keeps-first-size",
        "storage_rewrite gives a larger buffer the memory of a smaller one",
    ),
    fault(Area::Passes, "virtual-threads-share", "inject_virtual_thread gives all virtual threads the same memory"),
    fault(Area::Passes, "virtual-threads-drop-last", "inject_virtual_thread leaves out the last virtual thread"),
    fault(Area::Passes, "vectors-ignore-alignment", "vector_type_rewrite rounds the start of a vector down"),
    decoy(Area::Passes, "flatten-commutes", "flatten_buffer writes a + b as b + a"),
    decoy(Area::Passes, "simplify-twice", "simplify simplifies what it has simplified"),
    fault(Area::Judge, "outside-off-by-one", "enumeration takes an index that equals the extent for one inside"),
    fault(Area::Judge, "quotient-determines", "a quotient is taken to determine its dividend"),
    fault(Area::Judge, "collision-skips-last", "the search for collisions leaves out the last point of a block"),
    fault(Area::Judge, "padding-one-way", "enumeration asks only whether padding is reached, not whether the rest is"),
    fault(Area::Judge, "right-inverse-ignored", "enumeration asks of an inverse only that it leads back"),
    fault(Area::Judge, "ends-of-shared-axes", "a sum of two values of one index is taken to reach both their ends"),
    fault(Area::Judge, "remainders-of-fewer", "so many neighbours less one are taken to have all remainders"),
    fault(
        Area::Judge,
        "bits-skip-lowest",
        "equations over bits leave out the lowest bit of a value that is to be reached",
    ),
    fault(Area::Judge, "window-off-by-one", "the digits checker lets a sum reach the end of its window"),
    fault(Area::Judge, "digits-reach-padding", "the digits checker does not ask whether padding is reached"),
    fault(Area::Judge, "encode-ne-as-eq", "a condition x != y is given to Z3 as x == y"),
    fault(Area::Judge, "region-ignores-reads", "what a block reads may be anything that is not written"),
    fault(Area::Judge, "else-is-not-negated", "the judge takes the condition to hold in the other branch too"),
    fault(
        Area::Judge,
        "condition-outlives-write",
        "a condition on memory holds although that memory is written below it",
    ),
    fault(Area::Judge, "lockstep-ignores-first-axis", "lockstep does not compare the first of several indices"),
    fault(Area::Judge, "lockstep-ignores-conditions", "lockstep does not compare conditions that both programs ask"),
    fault(Area::Judge, "lockstep-ignores-kinds", "lockstep lets a serial loop become a parallel one"),
    fault(Area::Judge, "reorder-leaves-domain", "iterations that were moved need not be iterations before"),
    fault(Area::Judge, "reorder-loses-instances", "iterations before need not take place after"),
    fault(Area::Judge, "reorder-ignores-order", "iterations that touch the same element may change their order"),
    fault(Area::Judge, "lanes-see-each-other", "lanes of a statement may read what lanes in front of them wrote"),
    fault(Area::Judge, "scalarize-unit-stride", "the judge takes the lanes of each ramp for neighbours"),
    fault(Area::Judge, "flow-ignores-later-writes", "a value that is read may have been overwritten since"),
    fault(Area::Judge, "flow-ignores-earlier-writes", "what the call found may have been overwritten"),
    fault(
        Area::Judge,
        "flow-checks-one-case",
        "of the cases in which a value comes from different stores, one is checked",
    ),
    fault(
        Area::Judge,
        "flow-forgets-allocations",
        "memory that is allocated in a loop keeps its values between iterations",
    ),
    fault(
        Area::Judge,
        "flow-sources-need-not-run",
        "a value may come from a store under a condition that does not hold",
    ),
    fault(
        Area::Judge,
        "flow-takes-parameters-for-given",
        "a parameter that is written first may be read before, where nothing has to be in it",
    ),
    fault(Area::Judge, "flow-ignores-values", "stores that correspond may write different values"),
    fault(Area::Judge, "summands-ignore-conditions", "what is summed under a condition is summed always"),
    fault(Area::Judge, "summands-ignore-operators", "a product may be taken for a sum"),
    fault(Area::Judge, "summands-lose-signs", "what is subtracted may be taken for what is added"),
    fault(Area::Judge, "assertions-need-not-follow", "programs may assert different conditions"),
    fault(Area::Judge, "summands-forget-floats", "floats may be summed in any order without a premise"),
    fault(Area::Judge, "execution-ignores-conditions", "a store under a condition on values always takes place"),
    fault(Area::Judge, "execution-swaps-differences", "a difference of floats may be taken the other way round"),
    fault(Area::Judge, "lockstep-ignores-extents", "lockstep compares where loops begin and not how long they are"),
    fault(
        Area::Judge,
        "race-ignores-parallel",
        "the judge takes iterations of parallel loops to run one after the other",
    ),
    fault(
        Area::Judge,
        "race-forgets-next-round",
        "the judge does not compare the end of a round around a barrier with the start of the next one",
    ),
    fault(Area::Judge, "meaning-floors", "the meaning of a tile rounds the number of tiles down"),
    fault(Area::Judge, "meaning-folds-backwards", "the meaning of a fold takes the minor dimension for the major one"),
    fault(Area::Judge, "plan-forgets-reads", "the judge of plans lets a tensor die with its last write"),
    fault(Area::Judge, "memo-omits-definitions", "the memo's key leaves the shared definitions out"),
    fault(
        Area::Judge,
        "model-values-shift",
        "the values of a model from the memo are given to the variables in reverse",
    ),
    fault(Area::Judge, "extents-are-two", "the judge assumes that a symbolic extent is at least 2"),
    fault(Area::Judge, "vacuity-accepted", "what follows from premises that contradict each other counts as proved"),
    fault(
        Area::Judge,
        "encode-divides-euclidean",
        "a quotient by a negative constant is given to Z3 as the Euclidean one",
    ),
    fault(
        Area::Judge,
        "encode-remainder-keeps-positive",
        "the truncated remainder of a negative number is given to Z3 without its sign",
    ),
    fault(Area::Judge, "encode-mask-loses-bit", "a mask with several ones in a row is given to Z3 without the highest"),
    fault(
        Area::Judge,
        "encode-shift-truncates",
        "a right shift of a negative number is given to Z3 rounded towards zero",
    ),
    fault(
        Area::Judge,
        "encode-no-negative-divisor",
        "the remainder by a negative variable is stated to be between 0 and the divisor",
    ),
    fault(Area::Judge, "bits-one-too-few", "bit-vectors have one bit less than what is needed"),
    fault(Area::Judge, "bits-divide-unsigned", "a quotient by a power of two over bit-vectors is unsigned"),
    fault(Area::Judge, "terms-divide-towards-zero", "constants of terms are folded with truncated quotients"),
    fault(
        Area::Judge,
        "translate-swaps-choice",
        "a choice between two conditions is translated with its sides swapped",
    ),
    fault(Area::Judge, "memory-never-changes", "loads of an element before and after a statement are the same term"),
    fault(
        Area::Judge,
        "dropped-condition-unchecked",
        "lockstep does not ask whether a condition that was dropped holds",
    ),
    fault(Area::Judge, "added-condition-unchecked", "lockstep does not ask whether a condition that was added holds"),
    fault(Area::Judge, "discharge-drops-premises", "a fact of a fork is taken over without the premises of the fork"),
    fault(Area::Judge, "lemma-without-hypotheses", "the kernel applies a lemma without looking for its hypotheses"),
    fault(
        Area::Judge,
        "certificate-drops-a-fact",
        "the files of a certificate leave out the last fact that a step used",
    ),
    fault(
        Area::Judge,
        "lowering-ignores-guards",
        "the judge of lowerings does not ask whether the guards let every element pass",
    ),
    fault(Area::Judge, "lowering-ignores-order", "the judge of lowerings does not ask in which order the stores run"),
    decoy(Area::Judge, "encode-swaps-equality", "an equality is given to Z3 with its sides swapped"),
    decoy(Area::Judge, "sites-backwards", "the judge decides the statements of a program from the last to the first"),
    fault(Area::Planner, "planner-ignores-views", "reading a view does not keep the tensor alive that it shows"),
    fault(Area::Planner, "planner-frees-outputs", "the memory of an output is given back after its last use"),
    fault(Area::Planner, "planner-shares-early", "a tensor may lie where one lies that its step still reads"),
    fault(Area::Planner, "planner-unaligned", "offsets in a pool are not aligned"),
    fault(Area::Planner, "arena-splits-wrong", "what is left of a free block counts as the whole block"),
    fault(
        Area::Planner,
        "gap-forgets-longer",
        "a gap begins after the last tensor looked at, even inside a longer one",
    ),
    fault(Area::Planner, "rectangles-meet-by-one", "textures side by side may share a row"),
    fault(Area::Planner, "sheet-read-and-written", "a texture may lie in a sheet that its step both reads and writes"),
    fault(Area::Planner, "token-does-not-grow", "a token that is taken again keeps its size"),
    decoy(Area::Planner, "planner-other-ties", "of equal tensors the last is placed first"),
    fault(Area::Script, "printer-right-operand", "a - (b - c) is printed without parentheses"),
    fault(Area::Script, "printer-negated-constant", "the minus of a constant is printed as a negative constant"),
    fault(Area::Script, "printer-rounds-floats", "floats are printed with six digits"),
    fault(Area::Script, "printer-moves-separator", "the separators of an index map are printed one output late"),
    fault(Area::Script, "printer-unroll-is-serial", "an unrolled loop is printed as a serial one"),
    fault(Area::Script, "printer-reuses-names", "a variable may be printed with the name of another one in scope"),
    fault(Area::Script, "reader-stop-is-extent", "a loop from 2 to 7 is read as one of 7 iterations"),
    fault(Area::Script, "xla-drops-memory-space", "the memory space of a tiled layout is not printed"),
    decoy(Area::Script, "printer-more-parentheses", "operators are printed in parentheses everywhere"),
    fault(Area::Interpreter, "division-truncates", "floor division of a negative number rounds towards zero"),
    fault(
        Area::Interpreter,
        "remainder-keeps-sign",
        "the remainder of a negative number by a positive one stays negative",
    ),
    fault(Area::Interpreter, "shift-fills-zeros", "a right shift of a negative number fills with zeros"),
    fault(Area::Interpreter, "minimum-keeps-nan", "the minimum of NaN and a number is NaN"),
    fault(Area::Interpreter, "cast-wraps", "a float that is too large for an integer wraps instead of saturating"),
    fault(Area::Interpreter, "half-towards-zero", "float16 is rounded towards zero"),
    fault(Area::Interpreter, "unsigned-bytes-have-signs", "uint8 is read with a sign"),
    fault(
        Area::Interpreter,
        "lanes-are-neighbours",
        "in a nest that runs at once, the lanes of a vector are neighbours whatever its stride",
    ),
    fault(
        Area::Interpreter,
        "spread-drops-rest",
        "a loop spread over threads leaves out the iterations after the last whole chunk",
    ),
    fault(Area::Interpreter, "stream-forgets-offset", "a nest that runs at once forgets where its view begins"),
    fault(
        Area::Interpreter,
        "bounds-off-by-one",
        "an index that equals the extent is let through in a nest that runs at once",
    ),
    fault(
        Area::Interpreter,
        "race-forgets-readers",
        "the race check does not compare a write with the reads before it",
    ),
    fault(Area::Interpreter, "race-keeps-one-reader", "the race check remembers one reader of an element and not two"),
    fault(Area::Interpreter, "race-joins-loops", "the race check takes loops that follow each other for one"),
    fault(
        Area::Interpreter,
        "race-forgets-launch",
        "the race check takes code of a launch outside its inner loops to run before them",
    ),
    fault(Area::Interpreter, "race-forgets-barrier", "the race check takes what a barrier separates for concurrent"),
    decoy(Area::Interpreter, "one-by-one", "no nest runs at once: every iteration by itself"),
    decoy(Area::Interpreter, "minimum-commutes", "the minimum of two integers looks at the second first"),
    fault(Area::Codegen, "kernel-floor-div-truncates", "a kernel's floor division rounds towards zero"),
    fault(Area::Codegen, "kernel-lanes-are-neighbours", "a kernel takes the lanes of every ramp for neighbours"),
    fault(Area::Codegen, "kernel-half-truncates", "a kernel rounds float16 towards zero when it stores it"),
    fault(Area::Codegen, "kernel-image-transposed", "a kernel swaps the row and the column of a texel"),
    fault(Area::Codegen, "kernel-id-not-reduced", "loops that share a dimension of the launch are not taken apart"),
    fault(Area::Codegen, "kernel-forgets-barrier", "a kernel does not wait between statements that share elements"),
    fault(Area::Codegen, "kernel-drops-else", "a kernel runs the other branch of a condition always"),
    fault(Area::Codegen, "kernel-loops-to-extent", "a kernel's loop that does not begin at 0 ends at its extent"),
    fault(Area::Codegen, "kernel-maximum-is-nan", "a kernel's minimum and maximum of floats keep a NaN"),
    decoy(Area::Codegen, "kernel-sums-commute", "a kernel adds the parts of a position in another order"),
    decoy(Area::Codegen, "kernel-other-names", "helper functions of a kernel have other names"),
];

/// The fault with this name.
pub fn by_name(name: &str) -> Option<&'static PlantedFault> {
    FAULTS.iter().find(|fault| fault.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Collects the names in calls of the switch from all sources of the workspace.
    fn names_in_sources(folder: &Path, names: &mut BTreeSet<String>) {
        let entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        for path in entries {
            if path.is_dir() {
                let skipped = ["target", ".git", ".deps", "tests", "fuzz"];
                if !skipped.iter().any(|name| path.ends_with(name)) {
                    names_in_sources(&path, names);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("ir/src/sabotage.rs")
            {
                let text = fs::read_to_string(&path).unwrap();
                let calls = text.split(concat!("sabotage::", "on(\"")).skip(1);
                names.extend(calls.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name.to_owned()));
            }
        }
    }

    #[test]
    fn names_are_unique_and_found() {
        let names: BTreeSet<_> = FAULTS.iter().map(|fault| fault.name).collect();
        assert_eq!(names.len(), FAULTS.len());
        for fault in FAULTS {
            assert_eq!(by_name(fault.name).map(|found| found.name), Some(fault.name));
            assert!(fault.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", fault.name);
        }
    }

    #[test]
    fn every_fault_is_planted_and_every_planted_fault_is_listed() {
        let mut planted = BTreeSet::new();
        names_in_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut planted);
        let listed: BTreeSet<String> = FAULTS.iter().map(|fault| fault.name.to_owned()).collect();
        assert_eq!(planted, listed);
    }
}
