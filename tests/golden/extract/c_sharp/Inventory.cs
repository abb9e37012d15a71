using System;
using System.Collections.Generic;
using static System.Math;
using Json = System.Text.Json.JsonSerializer;
global using Shop.Common;

namespace Shop.Stock
{
    // FIXME: thread safety
    [Serializable]
    public abstract partial class Inventory<T> : Repository<T>, IDisposable, Shop.Api.IStore where T : class, IItem
    {
        public const int MaxItems = 100;
        private const string Note = "BUG: a string";
        private readonly Dictionary<string, List<T>> größen = new();

        public event EventHandler<Changed>? OnChange;

        public Inventory(IClock clock, int size = 10) : base(clock) { Audit.Write(nameof(size)); }

        public string Name { get; set; } = "x";
        public int Count => größen.Count;

        [Obsolete("old")]
        public async Task<T?> FindAsync(string key, bool strict = true, params string[] rest)
        {
            var item = await Load<Entry>(key); /* XXX slow */
            void Local() { }
            return new Wrapper<T>(item).Value;
        }

        public abstract void Clear();
        public static Inventory<T> operator +(Inventory<T> a, T b) => a;
        public T this[int i] => throw new NotFound(i);
        ~Inventory() { }
    }

    public interface IItem : IComparable<IItem>
    {
        decimal Price { get; }
        void Sell(int count = 1);
    }

    public enum State : byte { Open, Closed }
    public struct Point { public int X; public double Length() => Sqrt(X); }
    public record Line(string Text, decimal Amount = 0m) : Entry(Text);
    public record struct Pair(int A, int B);
    public delegate void Handler(object sender, EventArgs e);
}

// HACK file end
public static class Extensions { public static bool IsEmpty(this string s) => s.Length == 0; }
