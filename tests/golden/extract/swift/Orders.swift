import Foundation
import struct Shop.Money

/// Totals
protocol Priced { func total() -> Money }
enum OrderError: Error { case empty }
public struct Order: Base, Priced {
    let id: String
    // XXX: rounding
    func total() -> Money { return lines.reduce(Money.zero) { add($0, $1.price(2)) } }
    private func hidden(_ x: Int = 3) -> Int { helper(x) }
    init(id: String) { self.id = id }
}
final class Registry { static let shared = Registry() }
extension Order: Codable { func more() {} }
typealias Prices = [String: Money]
func sum<T: Priced>(_ items: [T], start: Money = .zero) -> Money { return start }
let maxItems = 40
actor Store {}
