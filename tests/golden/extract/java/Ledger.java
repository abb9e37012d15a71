package shop.ledger;

import java.util.List;
import java.util.function.*;
import static shop.util.Checks.notNull;

/**
 * Keeps entries.
 * BUG: closing twice throws
 */
@Service(name = "ledger")
public abstract class Ledger<E extends Entry & Comparable<E>> extends Book<E> implements Closeable, shop.api.Store<E> {
    public static final int MAX_ENTRIES = 1000;
    private static final String NOTE = "FIXME: a string";
    private final List<E> größen = new ArrayList<>();

    @Inject
    public Ledger(final Clock clock, String... names) {
        super(clock);
        this.clock = notNull(clock);
    }

    @Override
    @Deprecated
    public <T> List<T> map(Function<? super E, T> mapper /* never null */) throws LedgerException {
        Runnable r = () -> Audit.log("map");
        return größen.stream().map(mapper::apply).toList(); // XXX(otto) copies
    }

    protected abstract void close();

    interface Listener extends java.util.EventListener, Marker {
        int PRIORITY = 1;
        void onEntry(Entry entry);
        default void onClose() {}
    }

    enum State implements Coded { OPEN, CLOSED { void x() {} }; int code() { return 1; } }

    record Line(String text, @NotNull Money amount) implements Printable {
        Line { check(text); }
        static Line of(String text) { return new Line(text, new Money.Euro(0)); }
    }

    @interface Audited { String value() default "x"; }
}
