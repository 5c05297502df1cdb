// The subcommand table; each entry calls one function.
int main() { return 0; }
