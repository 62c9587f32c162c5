//! Parsing of Python source text, with all syntax errors and a limit on nesting.
//!
//! The parser and the readers recurse over the syntax tree, so its depth must be bounded before it exists. Therefore the
//! limit is checked on tokens: brackets, chains of operators (`1 + 1 + 1`, `- - - 1`, `a.b.c`, nested lambdas and
//! conditionals), blocks and `elif` chains each count as a level, and their sum is at most [`MAX_NESTING`].

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{Expr, Mod, ModModule};
use ruff_python_parser::{Mode, ParseOptions, lexer, parse_unchecked};
use ruff_text_size::TextRange;
use tilewright_ir::{Diagnostic, Span};

/// The greatest depth of a syntax tree. Every operator on the path from the root to a leaf counts as a level.
pub(crate) const MAX_NESTING: usize = 256;

/// The greatest number of scopes that are open at once because statements opened them for the rest of their block, such as
/// `A = T.alloc_buffer(...)`.
///
/// They are nested in the program, and not in the text. The compiler recurses over them, with up to 3 KiB of stack for each
/// in a release build.
pub const MAX_SCOPES: usize = 1024;

/// The greatest size of a source text, in bytes.
pub(crate) const MAX_BYTES: usize = 16 << 20;

/// Parses a file.
///
/// # Errors
/// All syntax errors, or the one error that the text is too long or nests too deeply.
pub(crate) fn parse_module(source: &str) -> Result<ModModule, Vec<Diagnostic>> {
    match parse(source, Mode::Module)? {
        Mod::Module(module) => Ok(module),
        Mod::Expression(_) => Err(vec![Diagnostic::error("syntax", None, "expected a file, found an expression")]),
    }
}

/// Parses a single expression. Line breaks are whitespace.
///
/// # Errors
/// As for [`parse_module`].
pub(crate) fn parse_expression(source: &str) -> Result<Expr, Vec<Diagnostic>> {
    match parse(source, Mode::ParenthesizedExpression)? {
        Mod::Expression(expression) => Ok(*expression.body),
        Mod::Module(_) => Err(vec![Diagnostic::error("syntax", None, "expected an expression, found a file")]),
    }
}

/// Returns whether a text is a Python identifier. Keywords such as `is` and `True` are not identifiers.
///
/// ```
/// assert!(tilewright_script::is_name("conv2d") && !tilewright_script::is_name("is"));
/// ```
pub fn is_name(text: &str) -> bool {
    matches!(parse_expression(text), Ok(Expr::Name(name)) if *name.id == *text)
}

/// Converts the range of a syntax node.
pub(crate) fn span(range: TextRange) -> Span {
    Span::new(range.start().to_u32(), range.end().to_u32())
}

/// Returns the element of `known` that is most similar to `word`, for a "did you mean" hint. Returns `None` if the
/// edit distance exceeds 1 plus a quarter of the length of `word`.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |name: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &name.to_lowercase());
    let limit = 1 + word.chars().count() / 4;
    let short = word.len() <= 64;
    let candidates = known.into_iter().filter(|_| short).map(|name| (distance(name), name));
    candidates.filter(|(distance, _)| *distance <= limit).min().map(|(_, name)| name)
}

/// Returns the function of `known` that is meant by `word`: the [`nearest`] one, or the longest one of at least three
/// letters that `word` begins with, such as `max` for `maximum`.
pub fn nearest_function<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let begins = |name: &&str| name.len() >= 3 && word.starts_with(name) && *name != word;
    nearest(word, known.clone()).or_else(|| known.into_iter().filter(begins).max_by_key(|name| name.len()))
}

/// Parses a text after checking its size and its nesting.
fn parse(source: &str, mode: Mode) -> Result<Mod, Vec<Diagnostic>> {
    if source.len() > MAX_BYTES {
        let message = format!("the text has {} bytes; at most {MAX_BYTES} are read", source.len());
        return Err(vec![Diagnostic::error("too-large", None, message)]);
    }
    if nests_deeper(source, mode) {
        return Err(vec![nesting_error(source, mode)]);
    }
    let parsed = parse_unchecked(source, ParseOptions::from(mode));
    if parsed.errors().is_empty() {
        return Ok(parsed.into_syntax());
    }
    Err(parsed.errors().iter().map(|error| syntax_error(source, &error.error.to_string(), error.location)).collect())
}

/// Converts an error of the parser, and adds a hint for its most frequent causes.
fn syntax_error(source: &str, message: &str, range: TextRange) -> Diagnostic {
    let line_end = source.get(..range.start().to_usize()).is_some_and(|before| before.trim_end().ends_with("..."));
    let lower = message.to_lowercase();
    let help = if line_end {
        "the program is unfinished: replace `...` by code, or by `pass`"
    } else if lower.contains("indent") {
        "blocks are indented evenly, and deeper than the line that opens them"
    } else if lower.contains("eof") || lower.contains("end of file") || lower.contains("found newline") {
        "something that was opened is not closed: check the brackets, and the `:` at the end of the line"
    } else {
        "the text has to be valid Python"
    };
    let mut message = message.trim_end_matches('.').to_owned();
    if let Some(first) = message.get(..1).map(str::to_lowercase) {
        message.replace_range(..1, &first);
    }
    Diagnostic::error("syntax", Some(span(range)), format!("syntax error: {message}")).with_help(help)
}

/// Creates the error for a text that nests too deeply, located at the first token beyond the limit.
///
/// [`nests_deeper`] is monotonic in the length of a prefix, so a binary search finds the shortest prefix that exceeds
/// the limit. Its end is the location.
fn nesting_error(source: &str, mode: Mode) -> Diagnostic {
    let (mut low, mut high) = (0, source.len());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let cut = (low + 1..=middle).rev().find(|&cut| source.is_char_boundary(cut)).unwrap_or(middle);
        let deep = source.get(..cut).is_some_and(|prefix| nests_deeper(prefix, mode));
        if deep {
            high = cut;
        } else {
            low = middle;
        }
    }
    let offset = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    let place = Span::new(offset(source.floor_char_boundary(low)), offset(source.ceil_char_boundary(high)));
    Diagnostic::error("nesting", Some(place), format!("the program nests deeper than {MAX_NESTING} levels here"))
        .with_help("name parts of the expression, or move inner blocks out; operators in a row count as levels too")
}

/// The state of one open bracket, or of the text outside all brackets.
struct Frame {
    /// The token that closes the bracket.
    closer: TokenKind,
    /// The number of operators since the last comma or line break.
    chain: usize,
    /// The number of lambdas whose colon is still to come. A comma before it separates parameters and does not end
    /// the chain.
    lambdas: usize,
}

impl Frame {
    /// Creates the state after an opening bracket.
    fn new(closer: TokenKind) -> Self {
        Self { closer, chain: 0, lambdas: 0 }
    }
}

/// Returns whether the tokens of `source` nest deeper than [`MAX_NESTING`].
///
/// The count is an upper bound of the depth of the syntax tree: it takes each operator of an expression for an
/// ancestor of the next one, whatever their precedence.
fn nests_deeper(source: &str, mode: Mode) -> bool {
    let mut tokens = lexer::lex(source, mode);
    let mut frames = vec![Frame::new(TokenKind::EndOfFile)];
    let mut elifs = vec![0usize];
    // `depth` is the sum of `chain` over all frames, `blocks` the number of open blocks plus the sum of `elifs`.
    let (mut depth, mut blocks) = (0usize, 0usize);
    let mut line_start = true;
    loop {
        let kind = tokens.next_token();
        let Some(frame) = frames.last_mut() else { return true };
        let was_line_start = std::mem::replace(&mut line_start, false);
        match kind {
            TokenKind::EndOfFile => return false,
            TokenKind::Indent => {
                elifs.push(0);
                blocks += 1;
                line_start = true;
            }
            TokenKind::Dedent => {
                blocks = blocks.saturating_sub(1 + elifs.pop().unwrap_or(0));
                line_start = true;
            }
            TokenKind::Comment | TokenKind::NonLogicalNewline => line_start = was_line_start,
            TokenKind::Newline => {
                depth -= std::mem::take(&mut frame.chain);
                frame.lambdas = 0;
                line_start = true;
            }
            TokenKind::Comma if frame.lambdas == 0 => depth -= std::mem::take(&mut frame.chain),
            TokenKind::Semi => depth -= std::mem::take(&mut frame.chain),
            TokenKind::Colon => {
                frame.lambdas = frame.lambdas.saturating_sub(1);
                frame.chain += 1;
                depth += 1;
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => {
                if frame.closer == kind {
                    depth -= frame.chain;
                    frames.pop();
                }
            }
            TokenKind::Name | TokenKind::Int | TokenKind::Float | TokenKind::String | TokenKind::Comma => {}
            _ => {
                frame.chain += 1;
                frame.lambdas += usize::from(kind == TokenKind::Lambda);
                depth += 1;
                let closer = match kind {
                    TokenKind::Lpar => Some(TokenKind::Rpar),
                    TokenKind::Lsqb => Some(TokenKind::Rsqb),
                    TokenKind::Lbrace => Some(TokenKind::Rbrace),
                    _ => None,
                };
                frames.extend(closer.map(Frame::new));
            }
        }
        if was_line_start && !line_start {
            count_elif(kind, &mut elifs, &mut blocks);
        }
        if depth + blocks > MAX_NESTING {
            return true;
        }
    }
}

/// Counts an `elif` at the start of a line. Each `elif` is nested in the `else` of the one before it; a statement that
/// is neither `elif` nor `else` ends the chain.
fn count_elif(kind: TokenKind, elifs: &mut [usize], blocks: &mut usize) {
    let Some(count) = elifs.last_mut() else { return };
    if kind == TokenKind::Elif {
        *count += 1;
        *blocks += 1;
    } else if kind != TokenKind::Else {
        *blocks = blocks.saturating_sub(std::mem::take(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_too_deep(source: &str) -> bool {
        parse_module(source).is_err_and(|found| found.iter().any(|error| error.code == "nesting"))
    }

    #[test]
    fn every_kind_of_deep_nesting_is_rejected() {
        let n = 5000;
        let blocks = (0..400).map(|level| " ".repeat(level) + "if x:\n").collect::<String>();
        let sources = [
            format!("x = {}1{}", "(".repeat(n), ")".repeat(n)),
            format!("x = {}1{}", "[".repeat(n), "]".repeat(n)),
            format!("x = {}1", "-".repeat(n)),
            format!("x = {}y", "not ".repeat(n)),
            format!("x = 1{}", " + 1".repeat(n)),
            format!("x = 1{}", "**1".repeat(n)),
            format!("x = {}1", "lambda a, b: ".repeat(n)),
            format!("x = {}1", "1 if y else ".repeat(n)),
            format!("x = y{}", ".z".repeat(n)),
            format!("x = y{}", "[0]".repeat(n)),
            format!("x = y{}", "()".repeat(n)),
            format!("if x:\n    pass\n{}", "elif x:\n    pass\n".repeat(n)),
            format!("{blocks}{}pass", " ".repeat(400)),
            "(]".repeat(n),
            format!("{}x = 1", "async ".repeat(n)),
            format!("x = {}", "f'{".repeat(n)),
        ];
        for source in sources {
            assert!(is_too_deep(&source), "{}", &source[..40]);
        }
    }

    #[test]
    fn long_programs_without_deep_nesting_are_read() {
        let n = 5000;
        let sources = [
            format!("x = [{}]", "1 + 2, ".repeat(n)),
            "x = 1 + 2 * y.z\n".repeat(n),
            "if x:\n    pass\nelif y:\n    pass\nelse:\n    pass\n".repeat(n),
            format!("x = f({})", "lambda a, b: a + b, ".repeat(n)),
            format!("x = 1{}", " + 1".repeat(200)),
        ];
        for source in sources {
            assert!(parse_module(&source).is_ok(), "{}", &source[..40]);
        }
    }

    #[test]
    fn a_nesting_error_points_at_the_first_level_beyond_the_limit() {
        let source = format!("\"\"\"Text\nof two lines\"\"\"\nx = {}1", "-".repeat(1000));
        let found = parse_module(&source).unwrap_err();
        let start = found[0].labels[0].span.start as usize;
        assert_eq!(source.find("x = ").map(|at| at + 4 + MAX_NESTING), Some(start + 1));
    }

    #[test]
    fn the_location_of_a_nesting_error_is_on_character_boundaries() {
        for letters in ["é", "中", "\u{10348}"] {
            for n in [255, 256, 257, 300] {
                let source = format!("{letters}{}", format!("({letters}").repeat(n));
                let Err(found) = parse_module(&source) else { continue };
                let span = found[0].labels[0].span;
                assert!(source.get(span.start as usize..span.end as usize).is_some(), "{span:?}");
            }
        }
    }

    #[test]
    fn all_syntax_errors_are_reported() {
        let found = parse_module("x = (1 +\n\ny = ]\nz = 1 2\n").unwrap_err();
        assert!(found.len() >= 2, "{found:?}");
        assert!(found.iter().all(|error| error.help.is_some() && !error.labels.is_empty()));
    }

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        assert_eq!(nearest("vectorised", ["serial", "vectorized"]), Some("vectorized"));
        assert_eq!(nearest("grd", ["serial", "grid"]), Some("grid"));
        assert_eq!(nearest("xyz", ["serial", "grid"]), None);
        assert_eq!(nearest("maximum", ["max", "min"]), None);
        assert_eq!(nearest_function("maximum", ["max", "min"]), Some("max"));
        assert_eq!(nearest_function("xyz", ["max", "min"]), None);
    }
}
