//! Levenshtein distance: the number of letters to replace, insert or delete to turn one word into another.

/// Whether the Levenshtein distance of two words is at most `changes`.
pub fn is_within(one: &str, other: &str, changes: usize) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len().abs_diff(other.len()) > changes {
        return false;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        row = next_row(&row, at, *letter, &other);
        if row.iter().all(|cost| *cost > changes) {
            return false;
        }
    }
    row.last().is_some_and(|cost| *cost <= changes)
}

/// The next row of the distance matrix: from one more letter of the first word to each prefix of the other.
fn next_row(row: &[usize], at: usize, letter: char, other: &[char]) -> Vec<usize> {
    let mut next = vec![at + 1];
    let mut left = at + 1;
    for (pair, theirs) in row.windows(2).zip(other) {
        let &[diagonal, above] = pair else { continue };
        left = (diagonal + usize::from(letter != *theirs)).min(above + 1).min(left + 1);
        next.push(left);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn distances_of_examples() {
        assert!(is_within("red", "red", 0) && is_within("red", "rad", 1) && is_within("red", "reed", 1));
        assert!(is_within("red", "ed", 1) && is_within("kitten", "sitten", 1) && !is_within("red", "blue", 2));
        assert!(is_within("", "ab", 2) && !is_within("", "abc", 2));
        assert!(is_within("straße", "strase", 1), "letters, not bytes");
    }

    proptest! {
        #[test]
        fn distance_is_symmetric(one in "[ab]{0,6}", other in "[ab]{0,6}", changes in 0usize..4) {
            prop_assert_eq!(is_within(&one, &other, changes), is_within(&other, &one, changes));
            prop_assert!(is_within(&one, &one, 0));
        }

        #[test]
        fn one_change_is_within_one(word in "[a-c]{1,8}", at in 0usize..8, letter in "[a-c]") {
            let mut changed: Vec<char> = word.chars().collect();
            let at = at % changed.len();
            changed.splice(at..=at, letter.chars());
            prop_assert!(is_within(&word, &changed.iter().collect::<String>(), 1));
        }
    }
}
