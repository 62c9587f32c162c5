//! The list of planted faults: places where the project can be made wrong on purpose, to measure
//! which faults the oracles detect.
//!
//! The switch is [`tilewright_ir::sabotage`]; the branches are in the code that they break, under
//! the names of this list. A *decoy* changes the code but not its behaviour: an oracle that reports
//! one is itself wrong.

mod area;

pub use area::Area;

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
    decoy(Area::Passes, "flatten-commutes", "flatten_buffer writes a + b as b + a"),
    decoy(Area::Passes, "simplify-twice", "simplify simplifies what it has simplified"),
    fault(Area::Loops, "split-unguarded", "the pass split puts no guard where the factor does not divide the extent"),
    fault(Area::Loops, "split-drops-rest", "the pass split leaves out the last iterations if they fill no inner loop"),
    fault(Area::Loops, "fuse-swaps", "the pass fuse exchanges the values of two loops"),
    fault(Area::Loops, "reorder-drops-guards", "the pass reorder forgets conditions between the loops"),
    fault(Area::Loops, "unroll-drops-last", "unroll writes out one iteration less"),
    fault(Area::Loops, "loop-partition-best-case", "loop_partition takes the loops inside at the values that help"),
    fault(Area::Loops, "loop-partition-one-too-many", "the main part that loop_partition makes is too long by one"),
    fault(Area::Loops, "remove-no-op-forgets-else", "remove_no_op turns an else branch into a then branch"),
    fault(Area::Loops, "remove-no-op-takes-single-loops", "remove_no_op removes loops of one iteration"),
    fault(Area::Loops, "compute-at-short-box", "compute_at computes one element less of each axis than is read"),
    fault(Area::Loops, "compute-at-unguarded", "compute_at computes elements that overhang the buffer"),
    fault(Area::Loops, "inline-swaps-axes", "compute_inline takes the indices of a load in reverse order"),
    fault(Area::Loops, "narrow-drops-last", "a loop that narrow_index_types changes has one iteration less"),
    fault(Area::Loops, "ssa-forgets-views", "convert_ssa renames a view where it is declared and not where it is used"),
    decoy(Area::Loops, "unroll-simplifies-twice", "unroll simplifies each copy twice"),
    fault(Area::Storage, "double-buffer-one-half", "double_buffer fills the half that is still read"),
    fault(
        Area::Storage,
        "double-buffer-starts-empty",
        "double_buffer does not fill the buffer for the first iteration",
    ),
    fault(
        Area::Storage,
        "double-buffer-unguarded",
        "double_buffer fills the buffer for an iteration after the last one",
    ),
    fault(
        Area::Storage,
        "compact-forgets-start",
        "compact_buffer_allocation does not move the first element to the start",
    ),
    fault(
        Area::Storage,
        "compact-one-less",
        "compact_buffer_allocation keeps one element less of each axis than is used",
    ),
    fault(Area::Storage, "storage-counts-first-use", "storage_rewrite takes a buffer as free after its first use"),
    fault(Area::Storage, "storage-in-place-anywhere", "storage_rewrite overwrites elements that other iterations read"),
    fault(
        Area::Storage,
        "storage-keeps-first-size",
        "storage_rewrite gives a larger buffer the memory of a smaller one",
    ),
    fault(Area::Storage, "thread-sync-drops-barriers", "thread_sync leaves out all barriers"),
    fault(Area::Storage, "thread-sync-sees-no-race", "thread_sync keeps no barrier of the text that it may remove"),
    decoy(Area::Storage, "thread-sync-other-order", "thread_sync tries outer barriers first"),
    fault(Area::Storage, "allreduce-unguarded", "a round of the tree combines a value that is not there"),
    fault(Area::Storage, "allreduce-forgets-last-thread", "the tree leaves out the value of the last thread"),
    fault(Area::Loops, "allreduce-all-threads-store", "the schedule step allreduce lets each thread store the result"),
    fault(Area::Storage, "packed-accepts-less", "make_packed_api accepts what is less than the right value"),
    fault(Area::Storage, "packed-forgets-last", "make_packed_api does not check the last part of a description"),
    decoy(Area::Storage, "packed-compares-swapped", "make_packed_api compares the right value with the argument"),
    fault(Area::Storage, "split-passes-no-last-scalar", "a device function is not passed its last scalar"),
    fault(Area::Storage, "split-passes-no-last-memory", "a device function is not passed its last buffer"),
    decoy(Area::Storage, "split-passes-in-other-order", "scalars are passed to device functions in another order"),
    fault(Area::Storage, "virtual-threads-share", "inject_virtual_thread gives all virtual threads the same memory"),
    fault(Area::Storage, "virtual-threads-drop-last", "inject_virtual_thread leaves out the last virtual thread"),
    fault(Area::Storage, "vectors-ignore-alignment", "vector_type_rewrite rounds the start of a vector down"),
    fault(Area::Storage, "vectors-take-first", "vector_type_rewrite takes every vector for the first one of its row"),
    decoy(Area::Storage, "double-buffer-fills-late", "double_buffer fills the other half behind what reads this one"),
    fault(Area::Lowering, "te-split-unguarded", "a split whose factor does not divide the extent has no guard"),
    fault(Area::Lowering, "te-guard-one-late", "the guard of such a split lets one iteration too many pass"),
    fault(Area::Lowering, "te-fuse-swapped", "a fused loop is taken apart with quotient and remainder swapped"),
    fault(
        Area::Lowering,
        "te-starts-too-deep",
        "a reduction starts inside the reduced loops, in every iteration again",
    ),
    fault(
        Area::Lowering,
        "lowering-ignores-guards",
        "the judge of lowerings does not ask whether the guards let every element pass",
    ),
    fault(
        Area::Lowering,
        "lowering-ignores-order",
        "the judge of lowerings does not ask in which order the stores run",
    ),
    decoy(Area::Lowering, "te-split-commutes", "a loop that was split is low + high * factor"),
    fault(Area::Blocks, "lower-blocks-drops-where", "lower_blocks runs instances that the predicate leaves out"),
    fault(Area::Blocks, "region-ignores-reads", "what a block reads may be anything that is not written"),
    fault(
        Area::Blocks,
        "domain-skips-conditions",
        "an instance of a block is taken for one that runs whatever the conditions are",
    ),
    fault(Area::Blocks, "scan-in-any-order", "scanned axes of a block may run in any order"),
    fault(Area::Blocks, "scan-at-once", "a loop whose iterations run at once may carry a scanned axis"),
    fault(Area::Blocks, "block-split-unguarded", "split on a block lets iterations run beyond the extent"),
    fault(
        Area::Blocks,
        "block-threads-share",
        "loops of a block that are bound to threads share memory that was one value",
    ),
    fault(Area::Blocks, "block-cache-one-less", "cache_read and cache_write copy one element less of each axis"),
    fault(Area::Blocks, "block-cache-write-early", "cache_write copies in front of the block that computes"),
    fault(
        Area::Blocks,
        "block-compute-one-less",
        "compute_at and reverse_compute_at compute one element less of each axis than is used",
    ),
    fault(
        Area::Blocks,
        "block-compute-unguarded",
        "compute_at and reverse_compute_at compute elements that overhang the domain",
    ),
    fault(Area::Blocks, "block-consumes-early", "reverse_compute_at reads in front of what computes"),
    fault(
        Area::Blocks,
        "block-inline-swaps-axes",
        "compute_inline of a block takes the indices of a load in reverse order",
    ),
    fault(
        Area::Blocks,
        "block-reverse-inline-swaps-axes",
        "reverse_compute_inline takes the indices of the store in reverse order",
    ),
    fault(Area::Blocks, "block-layout-fills-nothing", "transform_layout with a pad value does not write the padding"),
    fault(Area::Blocks, "block-separators-kept", "set_axis_separator leaves the separators as they are"),
    fault(Area::Blocks, "block-scope-kept", "set_scope leaves the memory where it is"),
    fault(
        Area::Blocks,
        "block-axes-unguarded",
        "transform_block_layout runs the block for values to which no old ones belong",
    ),
    fault(Area::Blocks, "block-reindex-swaps-axes", "reindex reads the copy with its axes in reverse order"),
    fault(Area::Blocks, "block-decompose-starts-late", "decompose_reduction initialises behind the loop that sums up"),
    decoy(Area::Blocks, "block-split-commutes", "split on a block adds the inner loop first"),
    fault(Area::Judge, "else-is-not-negated", "the judge takes the condition to hold in the other branch too"),
    fault(Area::Judge, "lockstep-ignores-first-axis", "lockstep does not compare the first of several indices"),
    fault(Area::Judge, "lockstep-ignores-conditions", "lockstep does not compare conditions that both programs ask"),
    fault(Area::Judge, "lockstep-ignores-kinds", "lockstep lets a serial loop become a parallel one"),
    fault(
        Area::Judge,
        "names-of-loaded-values-fit",
        "what a name of a loaded value stands for is not asked to stay in its type",
    ),
    fault(Area::Judge, "lockstep-ignores-extents", "lockstep compares where loops begin and not how long they are"),
    fault(
        Area::Judge,
        "translate-swaps-choice",
        "a choice between two conditions is translated with its sides swapped",
    ),
    fault(
        Area::Judge,
        "dropped-condition-unchecked",
        "lockstep does not ask whether a condition that was dropped holds",
    ),
    fault(Area::Judge, "added-condition-unchecked", "lockstep does not ask whether a condition that was added holds"),
    decoy(Area::Judge, "sites-backwards", "the judge decides the statements of a program from the last to the first"),
    fault(
        Area::Values,
        "condition-outlives-write",
        "a condition on memory holds although that memory is written below it",
    ),
    fault(Area::Values, "reorder-leaves-domain", "iterations that were moved need not be iterations before"),
    fault(Area::Values, "reorder-loses-instances", "iterations before need not take place after"),
    fault(Area::Values, "reorder-ignores-order", "iterations that touch the same element may change their order"),
    fault(
        Area::Values,
        "updates-ignore-operators",
        "updates of an element by different operators may change their order",
    ),
    fault(Area::Values, "updates-take-floats", "updates of a float may change their order"),
    fault(Area::Values, "lanes-see-each-other", "lanes of a statement may read what lanes in front of them wrote"),
    fault(Area::Values, "scalarize-unit-stride", "the judge takes the lanes of each ramp for neighbours"),
    fault(Area::Values, "flow-ignores-later-writes", "a value that is read may have been overwritten since"),
    fault(Area::Values, "flow-ignores-earlier-writes", "what the call found may have been overwritten"),
    fault(
        Area::Values,
        "flow-checks-one-case",
        "of the cases in which a value comes from different stores, one is checked",
    ),
    fault(
        Area::Values,
        "flow-forgets-allocations",
        "memory that is allocated in a loop keeps its values between iterations",
    ),
    fault(
        Area::Values,
        "flow-sources-need-not-run",
        "a value may come from a store under a condition that does not hold",
    ),
    fault(
        Area::Values,
        "flow-takes-parameters-for-given",
        "a parameter that is written first may be read before, where nothing has to be in it",
    ),
    fault(Area::Values, "flow-ignores-values", "stores that correspond may write different values"),
    fault(Area::Values, "summands-ignore-conditions", "what is summed under a condition is summed always"),
    fault(Area::Values, "summands-ignore-operators", "a product may be taken for a sum"),
    fault(Area::Values, "summands-lose-signs", "what is subtracted may be taken for what is added"),
    fault(Area::Values, "assertions-need-not-follow", "programs may assert different conditions"),
    fault(Area::Values, "summands-forget-floats", "floats may be summed in any order without a premise"),
    fault(Area::Values, "memory-never-changes", "loads of an element before and after a statement are the same term"),
    decoy(
        Area::Values,
        "order-backwards",
        "the pairs of stores that touch one element are compared from the last to the first",
    ),
    fault(Area::Terms, "execution-ignores-conditions", "a store under a condition on values always takes place"),
    fault(Area::Terms, "execution-swaps-differences", "a difference of floats may be taken the other way round"),
    fault(
        Area::Terms,
        "trace-forgets-kept-values",
        "a store under an unknown condition does not depend on what it may keep",
    ),
    fault(Area::Terms, "trace-forgets-else", "a part of a run does not depend on what the other branch reads"),
    fault(Area::Terms, "trace-forgets-last-unit", "a part of a run does not depend on the unit directly before it"),
    fault(
        Area::Terms,
        "execution-finds-nothing",
        "runs on terms do not note that what a parameter held at the call is read",
    ),
    fault(
        Area::Terms,
        "execution-takes-first-lane",
        "runs on terms take the first lane of each vector for all of them",
    ),
    fault(Area::Terms, "terms-ignore-casts", "a conversion is taken for the value that is converted"),
    fault(Area::Terms, "terms-compare-either-way", "x < y and y < x are one term"),
    decoy(Area::Terms, "execution-undivided", "runs on terms are not made in parts"),
    fault(
        Area::Threads,
        "race-ignores-parallel",
        "the judge takes iterations of parallel loops to run one after the other",
    ),
    fault(
        Area::Threads,
        "race-forgets-next-round",
        "the judge does not compare the end of a round around a barrier with the start of the next one",
    ),
    fault(Area::Threads, "race-forgets-readers", "the race check does not compare a write with the reads before it"),
    fault(Area::Threads, "race-keeps-one-reader", "the race check remembers one reader of an element and not two"),
    fault(Area::Threads, "race-joins-loops", "the race check takes loops that follow each other for one"),
    fault(
        Area::Threads,
        "race-separates-phases",
        "the race check takes the phases of a group to run one after the other without a barrier",
    ),
    fault(Area::Threads, "race-forgets-barrier", "the race check takes what a barrier separates for concurrent"),
    fault(Area::Threads, "phases-read-again", "a value that was read before a barrier is read again after it"),
    fault(Area::Threads, "phases-ignore-divergence", "barriers may be under conditions that differ between threads"),
    fault(
        Area::Threads,
        "phases-share-own-memory",
        "memory of a thread that lives across a barrier is that of the first thread",
    ),
    fault(Area::Threads, "intervals-forget-own-phase", "threads are taken not to run one phase at the same time"),
    fault(Area::Threads, "intervals-always-branch", "a barrier under a condition is taken to be reached"),
    fault(Area::Threads, "intervals-always-enter", "a loop around a barrier is taken to have an iteration"),
    fault(
        Area::Threads,
        "intervals-drop-ends",
        "a phase is taken not to meet the one after the next, without a barrier between them",
    ),
    decoy(Area::Threads, "phases-rename-threads", "the loops over threads of a phase have other names"),
    fault(Area::Maps, "outside-off-by-one", "enumeration takes an index that equals the extent for one inside"),
    fault(Area::Maps, "quotient-determines", "a quotient is taken to determine its dividend"),
    fault(Area::Maps, "collision-skips-last", "the search for collisions leaves out the last point of a block"),
    fault(Area::Maps, "padding-one-way", "enumeration asks only whether padding is reached, not whether the rest is"),
    fault(Area::Maps, "right-inverse-ignored", "enumeration asks of an inverse only that it leads back"),
    fault(
        Area::Maps,
        "any-index-reaches",
        "an index outside of a restricted domain is taken to reach the end of an axis",
    ),
    fault(
        Area::Maps,
        "bits-skip-lowest",
        "equations over bits leave out the lowest bit of a value that is to be reached",
    ),
    fault(Area::Maps, "window-off-by-one", "the digits checker lets a sum reach the end of its window"),
    fault(Area::Maps, "digits-reach-padding", "the digits checker does not ask whether padding is reached"),
    fault(Area::Maps, "meaning-floors", "the meaning of a tile rounds the number of tiles down"),
    fault(Area::Maps, "meaning-folds-backwards", "the meaning of a fold takes the minor dimension for the major one"),
    fault(
        Area::Maps,
        "box-shows-restricted",
        "what digits show of all indices is taken to hold of those that a predicate leaves",
    ),
    fault(
        Area::Maps,
        "excluded-reach",
        "enumeration takes a physical index for reached if an index that is left out has it",
    ),
    decoy(
        Area::Maps,
        "outside-end-first",
        "enumeration compares an index with the extent before it compares it with 0",
    ),
    fault(Area::Kernel, "encode-ne-as-eq", "a condition x != y is given to Z3 as x == y"),
    fault(Area::Kernel, "memo-omits-definitions", "the memo's key leaves the shared definitions out"),
    fault(
        Area::Kernel,
        "model-values-shift",
        "the values of a model from the memo are given to the variables in reverse",
    ),
    fault(Area::Kernel, "extents-are-two", "the judge assumes that a symbolic extent is at least 2"),
    fault(Area::Kernel, "vacuity-accepted", "what follows from premises that contradict each other counts as proved"),
    fault(
        Area::Kernel,
        "encode-divides-euclidean",
        "a quotient by a negative constant is given to Z3 as the Euclidean one",
    ),
    fault(
        Area::Kernel,
        "encode-remainder-keeps-positive",
        "the truncated remainder of a negative number is given to Z3 without its sign",
    ),
    fault(
        Area::Kernel,
        "encode-mask-loses-bit",
        "a mask with several ones in a row is given to Z3 without the highest",
    ),
    fault(
        Area::Kernel,
        "encode-shift-truncates",
        "a right shift of a negative number is given to Z3 rounded towards zero",
    ),
    fault(
        Area::Kernel,
        "encode-no-negative-divisor",
        "the remainder by a negative variable is stated to be between 0 and the divisor",
    ),
    fault(Area::Kernel, "bits-one-too-few", "bit-vectors have one bit less than what is needed"),
    fault(Area::Kernel, "bits-divide-unsigned", "a quotient by a power of two over bit-vectors is unsigned"),
    fault(Area::Kernel, "terms-divide-towards-zero", "constants of terms are folded with truncated quotients"),
    fault(Area::Kernel, "discharge-drops-premises", "a fact of a fork is taken over without the premises of the fork"),
    fault(Area::Kernel, "lemma-without-hypotheses", "the kernel applies a lemma without looking for its hypotheses"),
    fault(
        Area::Kernel,
        "certificate-drops-a-fact",
        "the files of a certificate leave out the last fact that a step used",
    ),
    decoy(Area::Kernel, "encode-swaps-equality", "an equality is given to Z3 with its sides swapped"),
    fault(Area::Planner, "plan-forgets-reads", "the judge of plans lets a tensor die with its last write"),
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
    fault(
        Area::Planner,
        "steps-may-read-their-results",
        "the judge of plans does not ask what a step reads of its result",
    ),
    fault(Area::Planner, "defined-takes-own-store", "what a statement reads counts as written by the same statement"),
    fault(
        Area::Planner,
        "defined-forgets-conditions",
        "a store in front counts as made, whatever the conditions around it are",
    ),
    fault(
        Area::Planner,
        "results-may-stay-unwritten",
        "the judge of plans does not ask whether a step writes all that is read of its results",
    ),
    fault(
        Area::Planner,
        "writers-need-not-run",
        "the iteration that is claimed to write an element need not be one that runs",
    ),
    fault(
        Area::Planner,
        "tried-stores-forget-last",
        "of the elements that all iterations leave out, the last one does not count",
    ),
    fault(
        Area::Planner,
        "in-place-takes-any-iteration",
        "a statement may overwrite what another iteration of it reads",
    ),
    fault(Area::Planner, "in-place-forgets-statements", "a statement may read what one in front of it has overwritten"),
    decoy(Area::Planner, "planner-other-ties", "of equal tensors the last is placed first"),
    fault(Area::Script, "printer-right-operand", "a - (b - c) is printed without parentheses"),
    fault(Area::Script, "printer-negated-constant", "the minus of a constant is printed as a negative constant"),
    fault(Area::Script, "printer-rounds-floats", "floats are printed with six digits"),
    fault(Area::Script, "printer-moves-separator", "the separators of an index map are printed one output late"),
    fault(Area::Script, "printer-unroll-is-serial", "an unrolled loop is printed as a serial one"),
    fault(Area::Script, "printer-device-args-reversed", "the arguments of a device function are printed backwards"),
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
    fault(Area::Codegen, "kernel-drops-written-barrier", "a kernel leaves out the barriers of the program"),
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

    #[test]
    fn every_part_has_faults_and_a_decoy() {
        for area in Area::ALL {
            let of_kind = |is_decoy| FAULTS.iter().filter(|row| row.area == area && row.is_decoy == is_decoy).count();
            assert!(of_kind(false) >= 4 && of_kind(true) >= 1, "{}", area.name());
            for oracle in area.oracles() {
                assert!(crate::oracles::by_name(oracle).is_some(), "{oracle}");
            }
        }
    }
}
