//! Regular expressions.
//!
//! Guarantees: Perl's syntax, unanchored; an invalid pattern or modifier makes the result undefined. The limits below
//! bound the time of any pattern: exceeding them is a specific error, never a wrong result.
//!
//! ```text
//! pattern ─ perl ─┬─► automaton        time linear in the text               nearly all patterns
//!                 └─► backtracking     bounded steps over a bounded text     look-around, back-references
//! ```
//!
//! Linear time is not enough for a large pattern over a large text: in the worst case an automaton takes one step for
//! each of its states at each byte. Usually it takes one step per byte, so a long text is searched by a lazy DFA that
//! gives up once it detects the worst case.

mod perl; // translation of Perl patterns to the syntax of the engines

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use pleiad_model::{Error, Result, Value};
use regex_automata::Input;
use regex_automata::hybrid::BuildError;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::syntax;

use super::Function;
use super::arguments::{boolean_value, integer, items, or_default, string, string_item};
use crate::expr::{Context, Datum};

pub const FUNCTIONS: &[Function] = &[
    Function::between("REGEXEXTRACT", 2, 4, extract),
    Function::between("REGEXEXTRACTALL", 2, 4, extract_all),
    Function::between("REGEXMATCH", 2, 3, is_match),
    Function::between("REGEXREPLACE", 3, 4, |args, cx| replace(args, cx, MatchScope::First)),
    Function::between("REGEXREPLACEALL", 3, 4, |args, cx| replace(args, cx, MatchScope::All)),
];

/// The memory limit of one compiled pattern.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;
/// The limit on states × bytes of text × searches; a few seconds in the worst case.
const STEPS_MAX: usize = 500_000_000;
/// The longest text for a backtracking pattern: between two steps it may read all of the rest.
pub const BACKTRACK_TEXT_BYTES_MAX: usize = 8 * 1024;
/// The longest text in which a backtracking pattern searches for all matches.
pub const BACKTRACK_ALL_TEXT_BYTES_MAX: usize = 1024;
const BACKTRACKS_MAX: usize = 20_000;
/// The lazy DFA gives up after clearing its cache this often, if each state was used for fewer bytes than
/// `BYTES_PER_STATE_MIN`.
const CACHE_CLEARS_MIN: usize = 4;
const BYTES_PER_STATE_MIN: usize = 10;
/// The number of patterns cached per thread: enough for one query, so that no pattern is compiled for every row.
const CACHED_PATTERNS_MAX: usize = 8;

// Functions.

fn is_match<'a>(args: &mut [Datum<'a>], _: &Context<'_>) -> Result<Datum<'a>> {
    let (Some(subject), Some(pattern)) = (string(args, 0), pattern(args, 2)?) else { return Ok(None) };
    boolean_value(Some(pattern.is_match(subject)?))
}

/// The first match, or one group of it.
fn extract<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let Some((subject, pattern, group)) = extraction(args)? else { return Ok(None) };
    let mut found = None;
    pattern.each_match(subject, group, MatchScope::First, &mut |_, part| {
        found = part.map(|part| string_item(part, cx)).transpose()?;
        Ok(())
    })?;
    Ok(found.map(Cow::Owned))
}

/// A group that did not participate in a match adds nothing.
fn extract_all<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let Some((subject, pattern, group)) = extraction(args)? else { return Ok(None) };
    let mut found = Vec::new();
    pattern.each_match(subject, group, MatchScope::All, &mut |_, part| {
        found.extend(part.map(|part| string_item(part, cx)).transpose()?);
        Ok(())
    })?;
    items(found)
}

/// The replacement is literal text: `$1` is a dollar sign and a one.
fn replace<'a>(args: &mut [Datum<'a>], cx: &Context<'_>, scope: MatchScope) -> Result<Datum<'a>> {
    let (Some(subject), Some(with), Some(pattern)) = (string(args, 0), string(args, 2), pattern(args, 3)?) else {
        return Ok(None);
    };
    cx.memory.reserve(subject.len())?;
    let (mut whole, mut copied) = (String::with_capacity(subject.len()), 0);
    pattern.each_match(subject, 0, scope, &mut |range, _| {
        cx.memory.reserve(with.len())?;
        whole.push_str(subject.get(copied..range.start).unwrap_or(""));
        whole.push_str(with);
        copied = range.end;
        Ok(())
    })?;
    whole.push_str(subject.get(copied..).unwrap_or(""));
    Ok(Some(Cow::Owned(Value::String(whole))))
}

/// Subject, pattern and group: `(subject, pattern [, modifiers [, group]])`.
fn extraction<'v>(args: &'v [Datum<'_>]) -> Result<Option<(&'v str, Rc<RegexPattern>, usize)>> {
    let group = or_default(args, 3, 0, || usize::try_from(integer(args, 3)?).ok());
    let (Some(subject), Some(group)) = (string(args, 0), group) else { return Ok(None) };
    Ok(pattern(args, 2)?.filter(|pattern| group < pattern.group_count()).map(|pattern| (subject, pattern, group)))
}

// Patterns.

#[derive(Clone, Copy, PartialEq)]
enum MatchScope {
    First,
    All,
}

struct RegexPattern {
    engine: RegexEngine,
    before_newline: Option<NewlineVariant>,
}

/// The variant of a pattern with end anchors for texts that end in a newline.
struct NewlineVariant {
    /// Nothing follows the end anchors: then matching the text with and without its newline on the main engine is
    /// enough.
    is_last: bool,
    source: String,
    modifiers: Modifiers,
    engine: OnceCell<RegexEngine>,
}

enum RegexEngine {
    Automaton(Box<Automaton>),
    Backtracking(fancy_regex::Regex),
}

/// Receives the range of a match and the text of the requested group.
type MatchVisitor<'f, 't> = &'f mut dyn FnMut(Range<usize>, Option<&'t str>) -> Result<()>;

impl RegexPattern {
    /// `None` if the pattern is invalid.
    fn compile(source: &str, modifiers: Modifiers) -> Result<Option<RegexPattern>> {
        let Some(translated) = perl::translate(source, modifiers.flags())? else { return Ok(None) };
        let engine = RegexEngine::compile(&translated.text, modifiers, translated.backtracks)?;
        let is_last = translated.ends_last;
        let before_newline = translated.before_newline.map(|source| NewlineVariant {
            is_last,
            source,
            modifiers,
            engine: OnceCell::new(),
        });
        Ok(engine.map(|engine| RegexPattern { engine, before_newline }))
    }

    fn group_count(&self) -> usize {
        self.engine.group_count()
    }

    fn is_match(&self, text: &str) -> Result<bool> {
        match (&self.before_newline, &self.engine, text.strip_suffix('\n')) {
            (Some(NewlineVariant { is_last: true, .. }), RegexEngine::Automaton(automaton), Some(line)) => {
                Ok(automaton.is_match(text)? || automaton.is_match(line)?)
            }
            _ => self.engine_for(text)?.is_match(text),
        }
    }

    fn each_match<'t>(
        &self,
        text: &'t str,
        group: usize,
        scope: MatchScope,
        visit: MatchVisitor<'_, 't>,
    ) -> Result<()> {
        self.engine_for(text)?.each_match(text, group, scope, visit)
    }

    fn engine_for(&self, text: &str) -> Result<&RegexEngine> {
        match &self.before_newline {
            Some(ending) if text.ends_with('\n') => ending.engine(),
            _ => Ok(&self.engine),
        }
    }
}

impl NewlineVariant {
    fn engine(&self) -> Result<&RegexEngine> {
        match self.engine.get() {
            Some(engine) => Ok(engine),
            None => {
                let engine = RegexEngine::compile(&self.source, self.modifiers, true)?.ok_or_else(newline_limit)?;
                Ok(self.engine.get_or_init(|| engine))
            }
        }
    }
}

impl RegexEngine {
    /// `None` if the pattern is invalid.
    fn compile(source: &str, modifiers: Modifiers, backtracks: bool) -> Result<Option<RegexEngine>> {
        if backtracks {
            return Ok(modifiers.backtracking(source).map(RegexEngine::Backtracking));
        }
        match modifiers.automaton(source) {
            Ok(regex) => Automaton::new(regex, source, modifiers)
                .map(|automaton| Some(RegexEngine::Automaton(Box::new(automaton)))),
            Err(regex::Error::CompiledTooBig(_)) => Err(too_large()),
            Err(_) => Ok(modifiers.backtracking(source).map(RegexEngine::Backtracking)),
        }
    }

    /// Group 0 is the whole match.
    fn group_count(&self) -> usize {
        match self {
            RegexEngine::Automaton(automaton) => automaton.regex.captures_len(),
            RegexEngine::Backtracking(regex) => regex.captures_len(),
        }
    }

    fn is_match(&self, text: &str) -> Result<bool> {
        match self {
            RegexEngine::Automaton(automaton) => automaton.is_match(text),
            RegexEngine::Backtracking(regex) => {
                check_length(text, BACKTRACK_TEXT_BYTES_MAX)?;
                regex.is_match(text).map_err(|_| too_many_steps())
            }
        }
    }

    fn each_match<'t>(
        &self,
        text: &'t str,
        group: usize,
        scope: MatchScope,
        visit: MatchVisitor<'_, 't>,
    ) -> Result<()> {
        match self {
            RegexEngine::Automaton(automaton) => automaton.each_match(text, group, scope, visit),
            RegexEngine::Backtracking(regex) => {
                let all = scope == MatchScope::All;
                check_length(text, if all { BACKTRACK_ALL_TEXT_BYTES_MAX } else { BACKTRACK_TEXT_BYTES_MAX })?;
                regex.captures_iter(text).take(scope.matches()).try_for_each(|captures| {
                    let captures = captures.map_err(|_| too_many_steps())?;
                    captures.get(0).map_or(Ok(()), |all| visit(all.range(), captures.get(group).map(|m| m.as_str())))
                })
            }
        }
    }
}

impl MatchScope {
    fn matches(self) -> usize {
        if self == MatchScope::First { 1 } else { usize::MAX }
    }
}

struct Automaton {
    regex: regex::Regex,
    /// Builds its states on demand; gives up if it builds too many.
    lazy: DFA,
    cache: RefCell<Cache>,
}

impl Automaton {
    fn new(regex: regex::Regex, source: &str, modifiers: Modifiers) -> Result<Self> {
        let lazy = modifiers.lazy(source).map_err(|_| too_large())?;
        Ok(Automaton { regex, cache: RefCell::new(lazy.create_cache()), lazy })
    }

    /// How often this text can be searched if every search is the worst case.
    fn searches_max(&self, text: &str) -> usize {
        STEPS_MAX / self.lazy.get_nfa().states().len().saturating_mul(text.len()).max(1)
    }

    fn is_match(&self, text: &str) -> Result<bool> {
        if self.searches_max(text) > 0 {
            return Ok(self.regex.is_match(text));
        }
        let input = Input::new(text).earliest(true);
        let found = self.lazy.try_search_fwd(&mut self.cache.borrow_mut(), &input);
        found.map(|end| end.is_some()).map_err(|_| too_many_steps())
    }

    fn each_match<'t>(
        &self,
        text: &'t str,
        group: usize,
        scope: MatchScope,
        visit: MatchVisitor<'_, 't>,
    ) -> Result<()> {
        let mut searches_left = self.searches_max(text);
        let mut search = || -> Result<()> {
            searches_left = searches_left.checked_sub(1).ok_or_else(too_many_steps)?;
            Ok(())
        };
        search()?;
        for captures in self.regex.captures_iter(text).take(scope.matches()) {
            if let Some(all) = captures.get(0) {
                visit(all.range(), captures.get(group).map(|part| part.as_str()))?;
            }
            if scope == MatchScope::All {
                search()?;
            }
        }
        Ok(())
    }
}

fn check_length(text: &str, bytes_max: usize) -> Result<()> {
    if text.len() <= bytes_max { Ok(()) } else { Err(too_many_steps()) }
}

fn too_many_steps() -> Error {
    limit_error("The pattern takes too many steps on a text this long.")
}

fn too_large() -> Error {
    limit_error("The pattern is too large.")
}

fn newline_limit() -> Error {
    limit_error("The pattern cannot be tried on a text that ends in a newline.")
}

fn limit_error(what: &str) -> Error {
    Error::invalid(format!("A regular expression cannot be evaluated within its limits. {what}"))
}

#[derive(Clone, Copy, Default, PartialEq)]
struct Modifiers {
    multi_line: bool,
    single_line: bool,
    ignore_case: bool,
    ignore_space: bool,
}

impl Modifiers {
    fn parse(letters: &str) -> Option<Self> {
        let mut modifiers = Modifiers::default();
        for letter in letters.bytes() {
            *match letter {
                b'm' => &mut modifiers.multi_line,
                b's' => &mut modifiers.single_line,
                b'i' => &mut modifiers.ignore_case,
                b'x' => &mut modifiers.ignore_space,
                _ => return None,
            } = true;
        }
        Some(modifiers)
    }

    fn flags(self) -> perl::RegexFlags {
        perl::RegexFlags { multi_line: self.multi_line, ignore_space: self.ignore_space }
    }

    fn automaton(self, source: &str) -> Result<regex::Regex, regex::Error> {
        regex::RegexBuilder::new(source)
            .multi_line(self.multi_line)
            .dot_matches_new_line(self.single_line)
            .case_insensitive(self.ignore_case)
            .ignore_whitespace(self.ignore_space)
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX)
            .build()
    }

    fn lazy(self, source: &str) -> Result<DFA, Box<BuildError>> {
        let syntax = syntax::Config::new()
            .multi_line(self.multi_line)
            .dot_matches_new_line(self.single_line)
            .case_insensitive(self.ignore_case)
            .ignore_whitespace(self.ignore_space);
        let limits = DFA::config()
            .cache_capacity(PATTERN_BYTES_MAX)
            .skip_cache_capacity_check(true)
            .unicode_word_boundary(true)
            .minimum_cache_clear_count(Some(CACHE_CLEARS_MIN))
            .minimum_bytes_per_state(Some(BYTES_PER_STATE_MIN));
        let size = thompson::Config::new().nfa_size_limit(Some(PATTERN_BYTES_MAX)).which_captures(WhichCaptures::None);
        DFA::builder().syntax(syntax).thompson(size).configure(limits).build(source).map_err(Box::new)
    }

    fn backtracking(self, source: &str) -> Option<fancy_regex::Regex> {
        fancy_regex::RegexBuilder::new(source)
            .multi_line(self.multi_line)
            .dot_matches_new_line(self.single_line)
            .case_insensitive(self.ignore_case)
            .ignore_whitespace(self.ignore_space)
            .delegate_size_limit(PATTERN_BYTES_MAX)
            .delegate_dfa_size_limit(PATTERN_BYTES_MAX)
            .backtrack_limit(BACKTRACKS_MAX)
            .build()
            .ok()
    }
}

// Pattern cache.

struct CachedPattern {
    source: String,
    modifiers: Modifiers,
    /// `None`: the source is not a valid pattern.
    pattern: Option<Rc<RegexPattern>>,
}

thread_local! {
    /// Most recently used first.
    static PATTERN_CACHE: RefCell<Vec<CachedPattern>> = const { RefCell::new(Vec::new()) };
}

/// The pattern in argument 1, with the modifiers in argument `modifiers_at`.
fn pattern(args: &[Datum<'_>], modifiers_at: usize) -> Result<Option<Rc<RegexPattern>>> {
    let modifiers = or_default(args, modifiers_at, "", || string(args, modifiers_at)).and_then(Modifiers::parse);
    let (Some(source), Some(modifiers)) = (string(args, 1), modifiers) else { return Ok(None) };
    PATTERN_CACHE.with_borrow_mut(|cache| cached_pattern(cache, source, modifiers))
}

fn cached_pattern(
    cache: &mut Vec<CachedPattern>,
    source: &str,
    modifiers: Modifiers,
) -> Result<Option<Rc<RegexPattern>>> {
    let known = cache.iter().position(|known| known.modifiers == modifiers && known.source == source);
    match known {
        Some(at) => cache[..=at].rotate_right(1),
        None => {
            let pattern = RegexPattern::compile(source, modifiers)?.map(Rc::new);
            cache.truncate(CACHED_PATTERNS_MAX - 1);
            cache.insert(0, CachedPattern { source: source.to_owned(), modifiers, pattern });
        }
    }
    Ok(cache.first().and_then(|latest| latest.pattern.clone()))
}
