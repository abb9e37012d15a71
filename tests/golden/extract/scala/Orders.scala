package com.shop.orders

import com.shop.core.{Money, Tax => T}
import com.shop.util._

/** Totals. */
trait Priced { def total: Money }
sealed abstract class OrderError(msg: String) extends RuntimeException(msg)
case class Order(id: String, lines: List[Line] = Nil) extends Base with Priced {
  // HACK: slow
  override def total: Money = lines.map(_.price(2)).sum
  private def hidden(x: Int = 3): Int = { helper(x) }
}
object Order { val MaxItems = 40; def apply(id: String): Order = new Order(id, Nil) }
type Prices = Map[String, Money]
enum State { case Open, Closed }
