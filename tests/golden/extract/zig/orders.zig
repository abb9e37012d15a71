const std = @import("std");
const util = @import("util.zig");
// BUG: leak
pub const Order = struct {
    id: u32,
    pub fn total(self: *Order, start: u32) u32 { return util.sum(self.id, start); }
    fn hidden(x: u32) u32 { return helper(x); }
};
pub const State = enum { open, closed };
pub fn main() !void { var o = Order{ .id = 1 }; _ = o.total(2); }
const MAX: u32 = 40;
test "orders" { }
