//! BSD's functions, table 2.3: one test per row and edge case; and what went wrong in other stacks.

mod contiguous;
mod copies;
mod cut;
mod faults;
mod grow;
mod rows;
mod support;
