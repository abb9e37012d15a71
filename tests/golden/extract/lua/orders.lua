local util = require("shop.util")
local M = {}
-- FIXME: tax
function M.total(lines, start) return util.sum(lines, start) end
local function hidden(x) return helper(x) end
function M:close() self:flush() end
M.open = function(name) return M.total(name) end
function global_thing() end
return M
