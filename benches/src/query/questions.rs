//! The queries, in three dialects, and the kind that decides each query's goal.
//!
//! Guarantees: the three texts of a question select the same from the same items; their answers are compared. Another
//! system's text is the fastest of those that its users would think of; slower attempts are noted next to it.

/// How a question is executed, which decides its goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// Reads every item.
    Scan,
    /// Reads every item, and every element of one of its arrays.
    Join,
    /// An index finds the items.
    Index,
    /// Reads every item and groups it.
    Group,
}

pub struct BenchQuestion {
    pub name: &'static str,
    pub kind: QuestionKind,
    pub pleiad: &'static str,
    pub postgres: &'static str,
    pub duckdb: &'static str,
}

pub const QUESTIONS: [BenchQuestion; 8] = [
    BenchQuestion {
        name: "scan: product of two numbers",
        kind: QuestionKind::Scan,
        pleiad: "SELECT VALUE COUNT(1) FROM c WHERE c.price * c.quantity > 500000",
        postgres: "SELECT count(*) FROM items WHERE (doc->>'price')::float8 * (doc->>'quantity')::float8 > 500000",
        // One extraction of two paths: two of one path each parse the document twice.
        duckdb: "SELECT count(*) FROM (SELECT json_extract_string(doc, ['$.price', '$.quantity']) AS v FROM items) \
                 WHERE v[1]::DOUBLE * v[2]::DOUBLE > 500000",
    },
    BenchQuestion {
        name: "scan: a number, not indexed",
        kind: QuestionKind::Scan,
        pleiad: "SELECT VALUE COUNT(1) FROM c WHERE c.quantity > 500",
        postgres: "SELECT count(*) FROM items WHERE (doc->>'quantity')::int > 500",
        duckdb: "SELECT count(*) FROM items WHERE (doc->>'$.quantity')::INT > 500",
    },
    BenchQuestion {
        name: "join: JOIN over an array",
        kind: QuestionKind::Join,
        pleiad: "SELECT VALUE COUNT(1) FROM c JOIN r IN c.ratings WHERE r.score >= 4",
        // Slower, by 20 % and more: a join with jsonb_array_elements, or with jsonb_path_query.
        postgres: "SELECT sum(jsonb_array_length(jsonb_path_query_array(doc, '$.ratings[*] ? (@.score >= 4)'))) FROM items",
        duckdb: "SELECT count(*) FROM (SELECT unnest(json_extract_string(doc, '$.ratings[*].score')) AS score FROM items) \
                 WHERE score::INT >= 4",
    },
    BenchQuestion {
        name: "index: equality, 20 hits",
        kind: QuestionKind::Index,
        pleiad: "SELECT c.id, c.price FROM c WHERE c.address.zip = '12345'",
        postgres: "SELECT doc->>'id', doc->'price' FROM items WHERE doc @> '{\"address\":{\"zip\":\"12345\"}}'",
        duckdb: "SELECT doc->>'$.id', (doc->>'$.price')::DOUBLE FROM items WHERE (doc->>'$.address.zip') = '12345'",
    },
    BenchQuestion {
        name: "index: range, ORDER BY, first 20",
        kind: QuestionKind::Index,
        pleiad: "SELECT TOP 20 c.id, c.price FROM c WHERE c.price > 500 ORDER BY c.price",
        postgres: "SELECT doc->>'id', doc->'price' FROM items WHERE (doc->>'price')::float8 > 500 \
                   ORDER BY (doc->>'price')::float8 LIMIT 20",
        duckdb: "SELECT doc->>'$.id', (doc->>'$.price')::DOUBLE AS price FROM items WHERE price > 500 \
                 ORDER BY price LIMIT 20",
    },
    BenchQuestion {
        name: "the same, against the GIN index alone",
        kind: QuestionKind::Index,
        pleiad: "SELECT TOP 20 c.id, c.price FROM c WHERE c.price > 500 ORDER BY c.price",
        // The B-tree index is on the other form of this cast.
        postgres: "SELECT doc->>'id', doc->'price' FROM items WHERE (doc->'price')::float8 > 500 \
                   ORDER BY (doc->'price')::float8 LIMIT 20",
        duckdb: "SELECT doc->>'$.id', (doc->>'$.price')::DOUBLE AS price FROM items WHERE price > 500 \
                 ORDER BY price LIMIT 20",
    },
    BenchQuestion {
        name: "index: ARRAY_CONTAINS, 2 % hits",
        kind: QuestionKind::Index,
        pleiad: "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.tags, 'alba')",
        postgres: "SELECT count(*) FROM items WHERE doc @> '{\"tags\":[\"alba\"]}'",
        // Slower: json_contains.
        duckdb: "SELECT count(*) FROM items WHERE list_contains(json_extract_string(doc, '$.tags[*]'), 'alba')",
    },
    BenchQuestion {
        name: "group: COUNT, SUM, AVG by category",
        kind: QuestionKind::Group,
        pleiad: "SELECT c.category, COUNT(1) AS items, SUM(c.price) AS price, AVG(c.quantity) AS quantity FROM c \
               GROUP BY c.category",
        postgres: "SELECT doc->>'category', count(*), sum((doc->>'price')::float8), avg((doc->>'quantity')::float8) \
                   FROM items GROUP BY 1",
        // Twice as slow: three extractions of one path each. Slightly slower: json_transform into a struct.
        duckdb: "SELECT v[1], count(*), sum(v[2]::DOUBLE), avg(v[3]::INT) FROM \
                 (SELECT json_extract_string(doc, ['$.category', '$.price', '$.quantity']) AS v FROM items) GROUP BY 1",
    },
];
