module compare

go 1.19
