// Asio as everything off a request's way uses it (admin, probes): one thread per io_context, concrete executor, errors
// as values.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace headgate::backends {

namespace asio = boost::asio;
using Executor = asio::io_context::executor_type;
template <class T = void>
using AsioTask = asio::awaitable<T, Executor>;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
using ErrorCode = boost::system::error_code;

inline constexpr auto no_throw = asio::as_tuple(asio::deferred);

}  // namespace headgate::backends
