#pragma once
#include <vector>
#include "geo/point.h"

// FIXME: split the header
namespace geo::shapes {

using std::vector;
using Points = std::vector<Point>;
typedef unsigned char byte_t;

constexpr double kPi = 3.14159;
#define SHAPE_CHECK(x) assert(x)

enum class Side : unsigned { Left, Right };
concept_t plain;

template <typename T>
concept Drawable = requires(T t) { t.draw(); };

template <typename T = double, int N = 2>
class Shape : public Base<T>, private virtual geo::Counted {
public:
    explicit Shape(T size, const std::string& name = "größe") : size_(size), name_(name) {}
    virtual ~Shape() = default;
    Shape(const Shape&) = delete;
    virtual T area() const = 0;
    static Shape* make(int n = 3);
    Shape& operator=(const Shape& other) { return *this; }
    bool operator==(const Shape& other) const { return true; }
    T size() const noexcept { return size_; }
    struct Corner { T x, y; };

private:
    T size_; // HACK cached
};

struct Circle final : Shape<double> {
    double area() const override;
};

template <typename T>
T scale(const T& shape, double by = 1.0) {
    auto helper = [](int x) { return x; };
    return shape.scaled(by);
}

double Circle::area() const {
    auto p = std::make_unique<Circle>(1.0);
    auto* raw = new geo::Polygon(3);
    p->draw(*raw);
    return kPi * geo::square(size()) + static_cast<double>(SHAPE_CHECK(raw));
}

template <typename T, int N>
Shape<T, N>* Shape<T, N>::make(int n) { return nullptr; }

namespace {
int hidden(Side side) { return 0; }
}

}  // namespace geo::shapes

extern "C" {
int geo_version(void) { return 1; }
}

std::vector<int>& geo::registry() { static std::vector<int> r; return r; }
