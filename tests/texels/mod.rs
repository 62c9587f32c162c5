//! Programs run on made-up inputs.

use tilewright_interp::{Arguments, Config, Observers, Order, RunError, Tensor, fill, run};
use tilewright_ir::{PrimFunc, validate};

pub(crate) use tilewright::fuzz::mutate::naively_vectorized;

/// The program with one change somewhere.
pub(crate) fn changed(random: &mut Random, func: &PrimFunc) -> PrimFunc {
    tilewright::fuzz::mutate::mutated_program(func, random.below(1 << 40) as u64)
}

/// What a run came to.
#[derive(Debug, PartialEq)]
pub(crate) enum Run {
    /// The parameters afterwards.
    Done(Vec<Tensor>),
    /// What the program did that has no meaning.
    Trap(String),
}

/// Runs a program; reading what nobody wrote and races are traps.
pub(crate) fn runs(func: &PrimFunc, seed: u64) -> Run {
    let make = |(position, (_, buffer)): (usize, &(tilewright_ir::Var, tilewright_ir::Buffer))| {
        let shape: Vec<u64> =
            buffer.shape.iter().map(|extent| u64::try_from(extent.as_const_int().unwrap()).unwrap()).collect();
        let mut tensor = Tensor::undefined(buffer.dtype, &shape).unwrap();
        fill(&mut tensor, seed * 31 + position as u64);
        tensor
    };
    let mut args = Arguments::tensors(func.buffer_map.iter().enumerate().map(make));
    let config = Config {
        threads: 1,
        observers: Observers { defined: true, race: true },
        order: Order::Program,
        ..Config::default()
    };
    match run(validate(func).unwrap(), &mut args, &config) {
        Ok(_) => Run::Done((0..func.params.len()).map(|param| args.tensor(param).unwrap().clone()).collect()),
        Err(RunError::Trap(trap)) => Run::Trap(trap.message),
        Err(error) => panic!("{error}"),
    }
}

/// Numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((bits >> 33) % bound.max(1) as u64).unwrap()
    }

    pub(crate) fn chance(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    pub(crate) fn pick<'t, T: ?Sized>(&mut self, items: &[&'t T]) -> &'t T {
        items[self.below(items.len())]
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for position in (1..items.len()).rev() {
            items.swap(position, self.below(position + 1));
        }
    }
}

/// The body of a nest: loops, and conditions in some order, nested or in one line, around a statement.
fn nest(loops: &[String], guards: &[String], store: &str) -> String {
    let mut indent = "    ".to_owned();
    let mut text = String::new();
    for line in loops.iter().cloned().chain(guards.iter().map(|guard| format!("if {guard}:"))) {
        text.extend([&indent, &line, "\n"]);
        indent += "    ";
    }
    format!("{text}{indent}{store}\n")
}

/// A copy into a scratch texture, under conditions, and out of it again.
pub(crate) fn texture_program(random: &mut Random) -> String {
    let (h, w, c) = (1 + random.below(3), 2 + random.below(2), 1 + random.below(9));
    let k = c.div_ceil(4);
    let ty = random.pick(&["int8", "float32", "uint8", "int32"]);
    let scope = random.pick(&["texture", "texture:weight", "texture:nhwc"]);
    let at = |h: &str, k: &str, w: &str, e: &str| match scope {
        "texture:nhwc" => format!("{h}, {w}, {k}, {e}"),
        _ => format!("{h}, {k}, {w}, {e}"),
    };
    let shape = at(&h.to_string(), &k.to_string(), &w.to_string(), "4");
    let mut loops = vec![format!("for h in T.N({h}):"), format!("for k in T.N({k}):"), format!("for w in T.N({w}):")];
    if random.chance(4) {
        loops.push(format!("for t in T.N({}):", 1 + random.below(2)));
    }
    random.shuffle(&mut loops);
    for line in &mut loops {
        *line = line.replace('N', random.pick(&["serial", "serial", "serial", "parallel"]));
    }
    loops.push(format!("for e in T.{}(4):", random.pick(&["serial", "vectorized", "parallel"])));
    let safe = format!("k * 4 + e < {c}");
    let mut value = random.pick(&["X[h, w, k * 4 + e]", "X[h, w, k * 4 + e] + X[h, I[h] % W, 0]"]).to_owned();
    let zero = if ty == "float32" { "T.float32(0)".to_owned() } else { format!("T.{ty}(0)") };
    let mut guards: Vec<String> = Vec::new();
    match random.below(4) {
        0 => value = format!("T.if_then_else({safe}, {value}, {zero})"),
        1 => guards.push(format!("not (k * 4 + e >= {c})")),
        _ => guards.push(safe),
    }
    for _ in 0..random.below(3) {
        guards.push(match random.below(7) {
            0 => format!("e < {}", 1 + random.below(4)),
            1 => "h > 0".to_owned(),
            2 => format!("w < {}", w - random.below(2)),
            3 => "I[h] > 0".to_owned(),
            4 => format!("k * 4 + e < {c} or e < 1"),
            5 => format!("k * 4 + e != {}", random.below(4)),
            _ => "h * 4 + e > 1".to_owned(),
        });
    }
    random.shuffle(&mut guards);
    // What is loaded is in its buffer only behind the condition that says so.
    if random.chance(2) {
        guards =
            vec![guards.join(" and ")].into_iter().filter(|all| !(all.is_empty() || all.contains(" or "))).collect();
    }
    let mut text = format!("    P = T.alloc_buffer(({shape}), \"{ty}\", scope=\"{scope}\")\n");
    let store = format!("P[{}] = {value}", at("h", "k", "w", "e")).replace('W', &w.to_string());
    text += &nest(&loops, &guards, &store);
    let load = format!("P[{}]", at("a", "d // 4", "b", "d % 4"));
    let mut asked: Vec<String> = guards.iter().filter(|_| !random.chance(4)).cloned().collect();
    if asked.iter().any(|guard| guard.contains("or") || guard.contains("not")) && random.chance(2) {
        asked.clear();
    }
    let renamed = |text: &str| {
        let text = text.replace("k * 4 + e", "d").replace("e <", "d % 4 <").replace("e >", "d % 4 >");
        text.replace("+ e", "+ d % 4").replace("h ", "a ").replace("I[h]", "I[a]").replace("w <", "b <")
    };
    let asked: Vec<String> = asked.iter().map(|guard| renamed(guard)).collect();
    let loops = format!("for a, b, d in T.grid({h}, {w}, {c}):");
    if random.chance(3) && !asked.is_empty() {
        let value = format!("Y[a, b, d] = T.if_then_else({}, {load}, {zero})", asked.join(" and "));
        text += &nest(&[loops], &[], &value);
    } else {
        text += &nest(&[loops], &asked, &format!("Y[a, b, d] = {load}"));
    }
    let tensor = |name: &str| format!("{name}: T.Buffer(({h}, {w}, {c}), \"{ty}\")");
    format!("{}, I: T.Buffer(({h},), \"int32\"), {}|{text}", tensor("X"), tensor("Y"))
}

/// A loop of lanes over flat memory that it may read too, by itself or through an alias.
pub(crate) fn vector_program(random: &mut Random) -> String {
    let ty = random.pick(&["int8", "int32", "uint8"]);
    let n = [2, 3, 4, 8][random.below(4)];
    let index = |random: &mut Random| {
        let other = random.below(3);
        match random.below(8) {
            0 | 1 => format!("i * {n} + c"),
            2 => format!("i * {n} + c + {other}"),
            3 => format!("i + c + {other}"),
            4 => format!("{} - c", n + other),
            5 => format!("c * 2 + {other}"),
            6 => format!("(i * {n} + c) // 2"),
            _ => format!("i * {n} + I[c]  % {n}"),
        }
    };
    let load = |random: &mut Random| {
        let at = index(random);
        match random.below(5) {
            0 | 1 => format!("A[{at}]"),
            2 => format!("D[({at}) // 4, ({at}) % 4]"),
            3 => "A[i]".to_owned(),
            _ => format!("X[{at}]"),
        }
    };
    let mut guards = Vec::new();
    for _ in 0..random.below(3) {
        guards.push(match random.below(5) {
            0 => "i > 0".to_owned(),
            1 => format!("{} > T.{ty}(3)", load(random)),
            2 => format!("c < {}", random.below(n) + 1),
            3 => format!("i * {n} + c < {}", 2 * n),
            _ => "X[i] > X[0] or i < 1".to_owned(),
        });
    }
    let value = match random.below(3) {
        0 => load(random),
        1 => format!("{} + {}", load(random), load(random)),
        _ => format!("T.if_then_else({} > T.{ty}(0), {}, {})", load(random), load(random), load(random)),
    };
    let store = format!("A[{}] = {value}", index(random));
    let loops = [
        format!("for i in T.serial({}):", 1 + random.below(3)),
        format!("for c in T.{}({n}):", random.pick(&["serial", "vectorized"])),
    ];
    let tensor = |name: &str| format!("{name}: T.Buffer((40,), \"{ty}\")");
    let alias = format!("    D = T.decl_buffer((10, 4), \"{ty}\", data=A.data)\n");
    format!("{}, I: T.Buffer((8,), \"int32\"), {}|{alias}{}", tensor("X"), tensor("A"), nest(&loops, &guards, &store))
}
