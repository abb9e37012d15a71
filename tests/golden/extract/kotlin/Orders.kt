package com.shop.orders

import com.shop.core.Money
import com.shop.util.*

/** FIXME(ana): totals ignore tax */
const val MAX_ITEMS = 40
typealias Prices = Map<String, Money>

interface Priced {
    fun total(): Money
}

sealed class OrderError(message: String) : RuntimeException(message)

@Serializable
data class Order(val id: String, private val lines: List<Line> = emptyList()) : Base(), Priced {
    override fun total(): Money = lines.sumOf { it.price(2) }

    private fun hidden(x: Int = 3): Int {
        fun inner() = 1
        return helper(x)
    }

    companion object {
        fun of(id: String) = Order(id)
    }
}

enum class State {
    OPEN,
    CLOSED,
}

object Registry {
    val all = mutableListOf<Order>()
}

fun <T : Priced> List<T>.sum(start: Money = Money.zero()): Money {
    return start
}
