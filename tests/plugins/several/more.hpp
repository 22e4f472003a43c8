#ifndef SEVERAL_MORE_HPP
#define SEVERAL_MORE_HPP

namespace several {
struct Beside {
    enum : int { value = 7 };
};
}  // namespace several

#endif  // SEVERAL_MORE_HPP
